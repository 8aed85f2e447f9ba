"""nnU-Net: label maps of large expected Dice from the probabilities that it saves."""

# /// script
# dependencies = ["fgfm", "nnunetv2"]
# ///

from pathlib import Path

import numpy as np
from batchgenerators.utilities.file_and_folder_operations import save_json
from nnunetv2.evaluation.evaluate_predictions import compute_metrics
from nnunetv2.inference.export_prediction import export_prediction_from_logits
from nnunetv2.utilities.plans_handling.plans_handler import PlansManager
from scipy.ndimage import gaussian_filter

SHAPE = (12, 40, 36)  # z, y, x
resampling = {"is_seg": False, "order": 1, "order_z": 0, "force_separate_z": None}
configuration = {
    "architecture": {},
    "spacing": [1.0, 1.0, 1.0],
    "resampling_fn_probabilities": "resample_data_or_seg_to_shape",
    "resampling_fn_probabilities_kwargs": resampling,
}
plans = {
    "label_manager": "LabelManager",
    "image_reader_writer": "SimpleITKIO",
    "transpose_forward": [1, 2, 0],
    "transpose_backward": [2, 0, 1],
    "configurations": {"3d_fullres": configuration},
}
datasets = {
    "exclusive": {"labels": {"background": 0, "edema": 1, "core": 2}, "file_ending": ".nii.gz"},
    "regions": {
        "labels": {"background": 0, "tumor": [1, 2], "core": 2},
        "regions_class_order": [1, 2],
        "file_ending": ".nii.gz",
    },
}
turned = [SHAPE[i] for i in plans["transpose_forward"]]
properties = {
    "spacing": [1.0, 1.0, 1.0],
    "sitk_stuff": {"spacing": [1.0] * 3, "origin": [0.0] * 3, "direction": np.eye(3).ravel()},
    "shape_before_cropping": turned,
    "shape_after_cropping_and_before_resampling": turned,
    "bbox_used_for_cropping": [[0, n] for n in turned],
}
manager = PlansManager(plans)
images = manager.image_reader_writer_class()
for folder in (Path("truth"), *map(Path, datasets)):
    folder.mkdir()
rng = np.random.default_rng(0)
for case in range(4):  # the true labels are drawn from the probabilities
    fields = np.stack([gaussian_filter(rng.standard_normal(turned), 3) for _ in range(3)])
    logits = 2.0 * fields / fields.std() + np.array([3.0, 0.0, 0.0])[:, None, None, None]
    proba = np.exp(logits) / np.exp(logits).sum(axis=0)
    truth = (proba.cumsum(axis=0) < rng.random(turned)).sum(axis=0)
    truth = truth.transpose(plans["transpose_backward"])
    images.write_seg(truth, f"truth/{case}.nii.gz", properties)
    tumor, core = 1.0 - proba[0], proba[2]
    regions = np.stack([np.log(p / (1.0 - p)) for p in (tumor, core)])
    for name, outputs in (("exclusive", logits), ("regions", regions)):
        export_prediction_from_logits(
            outputs.astype(np.float32),
            properties,
            manager.get_configuration("3d_fullres"),
            manager,
            datasets[name],
            f"{name}/{case}",
            save_probabilities=True,
            num_threads_torch=1,
        )
for name, dataset in datasets.items():  # as nnUNetv2_predict does
    save_json(plans, f"{name}/plans.json", sort_keys=False)
    save_json(dataset, f"{name}/dataset.json", sort_keys=False)
# %%
from batchgenerators.utilities.file_and_folder_operations import load_json, load_pickle
from nnunetv2.utilities.plans_handling.plans_handler import PlansManager

import fgfm


def decide_folder(folder, out):
    """Write label maps from the output of nnUNetv2_predict --save_probabilities."""
    plans = PlansManager(f"{folder}/plans.json")
    dataset = load_json(f"{folder}/dataset.json")
    labels = plans.get_label_manager(dataset)
    out.mkdir()
    for path in folder.glob("*.npz"):
        proba = np.load(path)["probabilities"]  # (class or region, z, y, x)
        rows = proba.reshape(len(proba), -1)
        masks = fgfm.decision.from_marginals(rows, n_jobs=-1).labels.reshape(proba.shape)
        if not labels.has_regions:  # exclusive: the most probable one
            masks[0] = 0  # the background is what no class claims
            masks = masks * proba
        segmentation = labels.convert_probabilities_to_segmentation(masks)
        plans.image_reader_writer_class().write_seg(
            segmentation,
            f"{out}/{path.stem}{dataset['file_ending']}",
            load_pickle(path.with_suffix(".pkl")),
        )


# %%
for name, dataset in datasets.items():
    decide_folder(Path(name), Path(f"{name}-dice"))
    labels = manager.get_label_manager(dataset)
    found = labels.foreground_regions if labels.has_regions else labels.foreground_labels
    means = []
    for folder in (name, f"{name}-dice"):
        dice = []
        for case in range(4):
            pair = f"truth/{case}.nii.gz", f"{folder}/{case}.nii.gz"
            metrics = compute_metrics(*pair, images, found)["metrics"]
            dice += [metrics[label]["Dice"] for label in found]
        means.append(np.mean(dice))
    rule = "above 0.5" if labels.has_regions else "most probable"
    print(f"nnU-Net, {name}: Dice {means[0]:.2f} {rule}, {means[1]:.2f} for Dice")
