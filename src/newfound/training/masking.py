"""Masked-word modelling (BERT's masking, logits at the masked places only), replaced words."""

import torch
from torch import Tensor

from newfound.encoding.backbone import MaskedWordHead
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.training.losses.dpn import masked_word_loss


def mask_words(
    ids: Tensor, mask: Tensor, special: Tensor, mask_id: int, vocabulary: int, share: float
) -> tuple[Tensor, Tensor, Tensor]:
    """BERT's masking: of `share` of the words 80% become [MASK], 10% a random word, 10% stay.

    Returns (ids with masks, places [P] in the flattened batch, words [P]). P is fixed by the shape,
    so that the step can be recorded: places that were not drawn carry the word -100.
    """
    draw = torch.rand(ids.shape, device=ids.device)
    draw = draw.masked_fill(~mask | torch.isin(ids, special), 2.0)
    chosen = draw < share
    capacity = int(1.25 * share * ids.numel()) + 8
    places = draw.flatten().topk(min(capacity, ids.numel()), largest=False).indices
    words = torch.where(chosen.flatten()[places], ids.flatten()[places], -100)
    kind = torch.rand(ids.shape, device=ids.device)
    random_words = torch.randint(vocabulary, ids.shape, device=ids.device)
    masked = torch.where(chosen & (kind < 0.8), mask_id, ids)
    masked = torch.where(chosen & (kind >= 0.8) & (kind < 0.9), random_words, masked)
    return masked, places, words


def replace_words(ids: Tensor, mask: Tensor, model: EncoderFeatures, share: float) -> Tensor:
    """A view of a text: `share` of its ordinary words are replaced by random ones."""
    draw = torch.rand(ids.shape, device=ids.device)
    chosen = (draw < share) & mask & ~torch.isin(ids, model.special)
    random_words = torch.randint(model.backbone.shape.vocabulary, ids.shape, device=ids.device)
    return torch.where(chosen, random_words, ids)


class MaskedWords:
    """Masks a batch and scores what the model makes of it."""

    def __init__(self, model: EncoderFeatures, share: float) -> None:
        encoder = model.encoder
        assert encoder.mask_id is not None
        self.mask_id, self.share, self.words = encoder.mask_id, share, model.backbone.words
        self.head = MaskedWordHead(model.backbone.shape).to(model.device)
        if encoder.word_head is not None:
            self.head.load_state_dict(encoder.word_head)
        self.special = model.special

    def mask(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(masked ids, places, words), see `mask_words`."""
        vocabulary = self.words.num_embeddings
        return mask_words(ids, mask, self.special, self.mask_id, vocabulary, self.share)

    def loss(self, hidden: Tensor, places: Tensor, words: Tensor) -> Tensor:
        """The loss from the last layer's hidden states [B, L, width] of the masked ids."""
        return masked_word_loss(self.head(hidden.flatten(0, 1)[places], self.words), words)
