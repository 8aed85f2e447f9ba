"""Hugging Face transformers: a metric for Trainer, and the decision from its logits.

The model is tiny and randomly initialised, so that nothing is downloaded.
"""

# /// script
# dependencies = ["fgfm", "transformers", "torch", "accelerate"]
# ///

import torch
from shared import films, report
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainingArguments,
    set_seed,
)
from transformers.utils import logging

import fgfm

logging.set_verbosity_error()
set_seed(0)
(texts, Y), (val_texts, Y_val), (new_texts, Y_new) = films(2400)
words = sorted({word for text in texts for word in text.split()})


def encode(texts, Y):
    """Return examples: numbers of words, padded to one length, and labels as floats."""
    rows = []
    for text, labels in zip(texts, Y, strict=True):
        ids = [2 + words.index(w) if w in words else 1 for w in text.split()][:32]
        ids += [0] * (32 - len(ids))
        rows.append(
            {
                "input_ids": torch.tensor(ids),
                "attention_mask": torch.tensor(ids).ne(0).long(),
                "labels": torch.tensor(labels).float(),
            }
        )
    return rows


model = BertForSequenceClassification(
    BertConfig(
        vocab_size=len(words) + 2,
        hidden_size=64,
        initializer_range=0.1,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=128,
        num_labels=Y.shape[1],
        problem_type="multi_label_classification",
    )
)
arguments = TrainingArguments(
    "trainer",
    num_train_epochs=10,
    learning_rate=2e-3,
    per_device_train_batch_size=32,
    save_strategy="no",
    report_to="none",
    disable_tqdm=True,
    logging_strategy="no",
    use_cpu=True,
)


# %%
def compute_metrics(predicted):
    """Return the F1 of both rules for the evaluated rows."""
    logits, Y = predicted
    decided = fgfm.decision.from_marginals(logits, logits=True)
    return {
        "f1_at_half": fgfm.f_measure(Y, logits > 0),
        "f1": fgfm.f_measure(Y, decided.labels),
    }


trainer = Trainer(
    model,
    arguments,
    train_dataset=encode(texts, Y),
    compute_metrics=compute_metrics,
)
trainer.remove_callback(PrinterCallback)
trainer.train()
val_logits = trainer.predict(encode(val_texts, Y_val)).predictions
decider = fgfm.FDecider(scores=True).fit(val_logits, Y_val)
logits = trainer.predict(encode(new_texts, Y_new)).predictions
labels, expected_f = decider.decide(logits)
# %%
metrics = trainer.evaluate(encode(new_texts, Y_new))
print(f"evaluate: {metrics['eval_f1_at_half']:.2f}, {metrics['eval_f1']:.2f}")
report("transformer", (val_logits, Y_val), (logits, Y_new), labels, half=0.0)
