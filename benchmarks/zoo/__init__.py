"""Models of transformers, torchvision and timm as their authors wrote them, by ``torch.compile``."""
