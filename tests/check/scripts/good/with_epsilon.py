# Expected: DP703
"""A budget in advance; only the last layer of a public model is trained."""

import torch
import transformers
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

EPSILON, EPOCHS, LR = 7.5, 3, 5e-4

tokenizer = transformers.BertTokenizer.from_pretrained("bert-base-cased")
model = transformers.BertForSequenceClassification.from_pretrained("bert-base-cased")


def encoded(path):
    rows = [line.split("\t") for line in open(path, encoding="utf-8")]
    texts = tokenizer([text for text, _ in rows], padding="max_length", return_tensors="pt")
    return TensorDataset(texts["input_ids"], torch.tensor([int(label) for _, label in rows]))


train_dataset = encoded("train.tsv")
test_dataset = encoded("test.tsv")
train_dataloader = DataLoader(train_dataset, batch_size=32)
test_dataloader = DataLoader(test_dataset, batch_size=32)

for p in model.parameters():
    p.requires_grad = False
trainable = [model.bert.encoder.layer[-1], model.bert.pooler, model.classifier]
for layer in trainable:
    for p in layer.parameters():
        p.requires_grad = True

model = model.train()
optimizer = torch.optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()), lr=LR)
DELTA = 1 / len(train_dataloader)  # more than enough of a bound for the target below
privacy_engine = PrivacyEngine()
model, optimizer, train_dataloader = privacy_engine.make_private_with_epsilon(
    module=model,
    optimizer=optimizer,
    data_loader=train_dataloader,
    target_delta=1e-6,
    target_epsilon=EPSILON,
    epochs=EPOCHS,
    max_grad_norm=0.1,
)

for epoch in range(1, EPOCHS + 1):
    for ids, labels in train_dataloader:
        optimizer.zero_grad()
        loss = model(input_ids=ids, labels=labels)[0]
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        hits = [(model(i)[0].argmax(1) == n).float().mean().item() for i, n in test_dataloader]
    print(epoch, sum(hits) / len(hits), privacy_engine.get_epsilon(1e-6))
