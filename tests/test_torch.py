"""`fgfm.torch`: the PyTorch layers."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from fgfm import FDecider, decision

torch = pytest.importorskip("torch", reason="PyTorch is not installed: fgfm[torch]")
FDecision = pytest.importorskip("fgfm.torch").FDecision
DiceDecision = pytest.importorskip("fgfm.torch").DiceDecision


def test_layer_decides_from_the_sigmoid_of_its_inputs():
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(5, 7), FDecision(beta=2.0, nonempty=True))
    x = torch.randn(11, 5)
    labels, expected = network(x)
    exact = decision.from_marginals(torch.sigmoid(network[0](x)), beta=2.0, nonempty=True)
    assert torch.equal(labels, exact.labels)
    torch.testing.assert_close(expected, exact.expected_f)
    assert not expected.requires_grad
    assert list(network[1].parameters()) == []
    assert "beta=2, zero_division=1, nonempty=True, average='samples', from_logits=True" in repr(
        network
    )
    proba = torch.rand(3, 4, dtype=torch.bfloat16)
    decided = FDecision(from_logits=False)(proba)
    assert torch.equal(decided.labels, decision.from_marginals(proba.float()).labels)
    with pytest.raises(ValueError, match=r"beta is 0.0: it must be a number greater than 0"):
        FDecision(beta=0.0)


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_layer_decides_batches(average):
    logits = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    layer = FDecision(average=average)
    labels, expected = layer(logits)
    exact = decision.from_marginals(torch.sigmoid(logits), average=average)
    assert torch.equal(labels, exact.labels)
    torch.testing.assert_close(expected, exact.expected_f)
    assert labels.is_contiguous()
    torch.library.opcheck(torch.ops.fgfm.decide, (logits, 1.0, 1.0, False, "f", average, True))
    with pytest.raises(ValueError, match="average is 'weighted'"):
        FDecision(average="weighted")


def test_small_logits_keep_their_probability():
    """The sigmoid of these is 0 in float32."""
    logits = torch.tensor([[-120.0, -110.0], [-300.0, -120.0]])
    labels, expected_f = FDecision(nonempty=True)(logits)
    assert labels.tolist() == [[0, 1], [0, 1]]
    assert expected_f.dtype == torch.float32
    exact = FDecision(nonempty=True)(logits.double()).expected_f
    assert torch.allclose(expected_f.double(), exact, rtol=1e-6)


def test_invalid_inputs_raise():
    logits = torch.zeros(2, 3)
    for inputs, message in (
        (logits + 0j, "inputs has dtype torch.complex64: it must hold real numbers"),
        (logits.to_sparse(), "inputs is a tensor of layout torch.sparse_coo: it must be dense"),
        (logits.numpy(), "inputs is ndarray: it must be a tensor"),
    ):
        with pytest.raises(TypeError, match=message):
            FDecision()(inputs)
    with pytest.raises(ValueError, match=r"inputs has shape \(3,\): it must have 2 dimensions"):
        FDecision()(logits[0])
    with pytest.raises(ValueError, match=r"proba\[0, 0\] is nan") as caught:
        FDecision()(logits * torch.nan)
    assert caught.value.__notes__ == ["proba is the inputs"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_layer_is_one_operator(dtype):
    """torch.compile and torch.export do not trace into it; the number of rows may vary."""
    layer = FDecision(nonempty=True)
    torch.manual_seed(0)
    logits = torch.randn(6, 5).to(getattr(torch, dtype))
    torch.library.opcheck(torch.ops.fgfm.decide, (logits, 1.0, 1.0, True, "f", "samples", True))
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    rows = {0: torch.export.Dim("rows")}
    exported = torch.export.export(layer, (logits,), dynamic_shapes=(rows,)).module()
    for inputs in (logits, 5.0 * torch.cat([logits, -logits])):
        labels, expected = layer(inputs)
        for decided in (compiled(inputs), exported(inputs)):
            assert torch.equal(decided.labels, labels)
            assert torch.equal(decided.expected_f, expected)


def test_layer_behaves_as_a_module():
    torch.manual_seed(0)
    layer = FDecision(2.0, nonempty=True).half().train()
    assert layer.state_dict() == {}
    logits = torch.randn(4, 5, requires_grad=True)
    decided = layer(logits)
    assert not decided.expected_f.requires_grad
    assert torch.equal(pickle.loads(pickle.dumps(layer))(logits).labels, decided.labels)
    assert layer(logits[:0]).labels.shape == (0, 5)
    assert layer(logits.to("meta")).labels.shape == (4, 5)


@pytest.mark.parametrize("shape", [(3, 2, 5, 6), (2, 4, 3, 3), (1, 40, 30), (7, 8)])
def test_masks_are_rows_of_pixels(shape):
    """With the last two axes as pixels, whatever the number of leading axes."""
    logits = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    masks, expected = DiceDecision()(logits)
    rows = torch.sigmoid(logits).reshape(-1, shape[-2] * shape[-1])
    exact = decision.from_marginals(rows.numpy())
    assert masks.dtype == torch.int8
    assert torch.equal(masks, torch.from_numpy(exact.labels).reshape(shape))
    assert expected.shape == shape[:-2]
    torch.testing.assert_close(expected.flatten(), torch.from_numpy(exact.expected_f).float())


def test_volumes_and_parameters_of_masks():
    proba = torch.rand(2, 3, 4, 5, 6, generator=torch.Generator().manual_seed(0)) / 20.0
    layer = DiceDecision(3, nonempty=True, from_logits=False)
    masks, expected = layer(proba)
    exact = decision.from_marginals(proba.flatten(2).flatten(0, 1).numpy(), nonempty=True)
    assert torch.equal(masks.flatten(2).flatten(0, 1), torch.from_numpy(exact.labels))
    assert expected.shape == (2, 3)
    shown = "spatial_dims=3, measure='dice', zero_division=1, nonempty=True, from_logits=False"
    assert shown in repr(layer)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(proba).labels, masks)
    exported = torch.export.export(layer, (proba,)).module()
    assert torch.equal(exported(proba).labels, masks)
    empty = layer(proba[:0])
    assert empty.labels.shape == (0, 3, 4, 5, 6)


def test_masks_of_largest_iou():
    proba = torch.rand(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    masks, expected = DiceDecision(measure="iou", from_logits=False)(proba)
    exact = decision.from_marginals(proba.reshape(6, 20).numpy(), measure="jaccard")
    assert torch.equal(masks.reshape(6, 20), torch.from_numpy(exact.labels))
    torch.testing.assert_close(expected.flatten(), torch.from_numpy(exact.expected_f).float())
    assert (expected < DiceDecision(from_logits=False)(proba).expected_f).all()


def test_masks_of_a_subclass_keep_its_attributes():
    """As those of a MetaTensor of MONAI keep its metadata."""

    class Image(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            out = super().__torch_function__(func, types, args, kwargs)
            for part in out if isinstance(out, tuple) else (out,):
                if isinstance(part, cls):
                    part.origin = "scanner"
            return out

    logits = torch.randn(2, 3, 4, 5, 6, generator=torch.Generator().manual_seed(0))
    for inputs in (logits, logits.half().transpose(2, 4)):
        masks, _ = DiceDecision(3)(inputs.as_subclass(Image))
        assert masks.origin == "scanner"
        assert torch.equal(masks.as_subclass(torch.Tensor), DiceDecision(3)(inputs).labels)


def test_invalid_masks_raise():
    with pytest.raises(ValueError, match=r"spatial_dims is 0: it must be an integer, 1 or more"):
        DiceDecision(0)
    with pytest.raises(ValueError, match=r"measure is 'f': it must be one of 'dice', 'iou'"):
        DiceDecision(measure="f")
    with pytest.raises(ValueError, match=r"inputs has shape \(4,\): it must have at least 2 dim"):
        DiceDecision()(torch.zeros(4))
    with pytest.raises(TypeError, match="inputs is list: it must be a tensor"):
        DiceDecision()([[0.5]])


# A fitted decider as a module


def validation_rows(n, m, seed=0):
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n, m)) * 1.5 - 0.8 + 0.5 * rng.normal(size=(n, 1))
    return latent, (rng.random((n, m)) < 1.0 / (1.0 + np.exp(-latent))).astype(int)


def check_module(decider, X):
    """Compare the labels of the module with those of `predict`, for inputs of all precisions."""
    module = FDecision.from_decider(decider)
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        inputs = torch.as_tensor(X).to(dtype)
        labels, value = module(inputs)
        values = inputs.double().numpy()
        expected = decider.predict(values)
        assert np.array_equal(labels.numpy(), expected), dtype
        assert value.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
        if hasattr(value, "expected_f"):
            np.testing.assert_allclose(value, decider.expected_f(values), rtol=1e-6)
    return module


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("scores", [False, True])
@pytest.mark.parametrize("average", ["samples", "macro", "micro", "weighted"])
def test_module_of_a_decider(average, scores, calibration):
    latent, Y = validation_rows(10_500, 6)
    X = 20.0 * latent + 50.0 if scores else 1.0 / (1.0 + np.exp(-latent))
    decider = FDecider(average=average, scores=scores, calibration=calibration)
    check_module(decider.fit(X[:500], Y[:500]), X[500:])


def test_modules_of_flat_y():
    latent, Y = validation_rows(3000, 4)
    flat = FDecider(scores=True).fit(latent[:500, 0], Y[:500, 0])
    check_module(flat, latent[500:, 0])
    proba = 1.0 / (1.0 + np.exp(-latent[:, 0]))
    both = np.column_stack([proba, 1.0 - proba])
    named = np.array(["b", "a"])[Y[:, 0]]
    decider = FDecider(pos_label="a").fit(both[:500], named[:500])
    labels, _ = FDecision.from_decider(decider)(torch.as_tensor(both))
    assert np.array_equal(labels, decider.predict(both) == "a")
    classes = np.argmax(latent + np.random.default_rng(0).gumbel(size=latent.shape), axis=1)
    decider = FDecider(average="macro", scores=True).fit(latent[:500], classes[:500])
    check_module(decider, latent)
    assert "average='samples', scores=True" in repr(FDecision.from_decider(flat))
    with pytest.raises(
        ValueError, match=r"inputs has shape \(3, 2\): it must have 2 dimensions, and"
    ):
        FDecision.from_decider(flat)(torch.zeros(3, 2))


def test_module_of_a_decider_is_traced_and_keeps_its_precision():
    latent, Y = validation_rows(1000, 5)
    X = torch.as_tensor(latent).float()
    rows = {0: torch.export.Dim("rows")}
    for average in ("samples", "macro"):
        decider = FDecider(
            average=average, scores=True, max_labels=3 * (average == "samples") or None
        )
        module = FDecision.from_decider(decider.fit(X[:500], Y[:500]))
        assert not list(module.parameters())
        labels, value = module(X)
        compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
        exported = torch.export.export(module, (X[:7],), dynamic_shapes=(rows,)).module()
        copied = pickle.loads(pickle.dumps(copy.deepcopy(module).half().to("cpu")))
        for found in (compiled(X), exported(X), copied(X)):
            assert torch.equal(found[0], labels)
            assert torch.equal(found[1], value)
        assert module(X[:0])[0].shape == (0, 5)
        assert torch.equal(module(X[3:4])[0], labels[3:4])


@pytest.mark.parametrize(
    ("decider", "message"),
    [
        (FDecider(), "it must be fitted"),
        (FDecider(constraints=decision.Constraints(forbidden=(3,))), "decider has constraints"),
        (FDecider(min_recall=0.5), "floors of each row"),
        (FDecider(average="macro", max_labels=2), "limits on the number of labels"),
    ],
)
def test_deciders_without_a_module(decider, message):
    latent, Y = validation_rows(300, 4)
    if message != "it must be fitted":
        decider.set_params(scores=True).fit(latent, Y)
    with pytest.raises(ValueError, match=message):
        FDecision.from_decider(decider)
