# Expected: DP703
"""Names to languages, with Opacus' own LSTM and a vocabulary that is fixed in advance."""

import string

import torch
from opacus import PrivacyEngine
from opacus.layers import DPLSTM
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, random_split

ALPHABET = string.ascii_letters + " .,;'"


class Names(Dataset):
    def __init__(self, path):
        self.rows = [line.rstrip("\n").split("\t") for line in open(path, encoding="utf-8")]
        self.languages = ["Czech", "English", "French", "German"]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, place):
        name, language = self.rows[place]
        letters = torch.tensor([ALPHABET.find(letter) + 1 for letter in name])
        return letters, self.languages.index(language)


class Classifier(nn.Module):
    def __init__(self, size=64):
        super().__init__()
        self.embedding = nn.Embedding(len(ALPHABET) + 1, size)
        self.lstm = DPLSTM(size, 128, num_layers=1, batch_first=True)
        self.out = nn.Linear(128, 4)

    def forward(self, x):
        hidden, _ = self.lstm(self.embedding(x))
        return self.out(hidden[:, -1, :])


def collate(batch):
    names = pad_sequence([name for name, _ in batch], batch_first=True)
    return names, torch.tensor([language for _, language in batch])


def train(model, criterion, optimizer, train_loader, epoch, privacy_engine, target_delta):
    model.train()
    accs, losses = [], []
    for x, y in train_loader:
        logits = model(x)
        loss = criterion(logits, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        accs.append(float((logits.argmax(1) == y).float().mean()))
        losses.append(float(loss))
    epsilon = privacy_engine.get_epsilon(target_delta)
    print(f"{epoch}: loss {sum(losses) / len(losses)}, accuracy {max(accs)}, ε {epsilon}")


def main():
    names = Names("names.tsv")
    train_part, test_part = random_split(names, [16_000, 4_000])
    train_loader = DataLoader(train_part, batch_size=800, collate_fn=collate)
    test_loader = DataLoader(test_part, batch_size=800, collate_fn=collate)
    model = Classifier()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
    privacy_engine = PrivacyEngine()
    model, optimizer, train_loader = privacy_engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=train_loader,
        max_grad_norm=1.5,
        noise_multiplier=1.0,
    )
    for epoch in range(50):
        train(model, criterion, optimizer, train_loader, epoch, privacy_engine, 1e-5)
    model.eval()
    hits = sum(int((model(x).argmax(1) == y).sum()) for x, y in test_loader)
    print(hits / len(test_part))


if __name__ == "__main__":
    main()
