"""Masked-word modelling as in BERT, with scores at masked tokens only, and replaced words."""

import torch
from torch import Tensor

from newfound.encoding.backbone import MaskedWordHead
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.training.losses.dpn import masked_word_loss


def mask_words(
    ids: Tensor, mask: Tensor, special: Tensor, mask_id: int, vocabulary: int, share: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Mask words as BERT does: of the chosen words 80% become [MASK], 10% random, 10% stay.

    Parameters
    ----------
    ids : Tensor of shape [B, L]
        Token ids.
    mask : Tensor of shape [B, L], bool
        Tokens that may be masked.
    special : Tensor
        Ids that are never masked.
    mask_id : int
        Id of [MASK].
    vocabulary : int
    share : float
        Share of words to choose.

    Returns
    -------
    masked : Tensor of shape [B, L]
        Ids after masking.
    places : Tensor of shape [P]
        Chosen tokens, as indices into the flattened batch. P depends on the shape only, so that
        the step can be a CUDA graph.
    words : Tensor of shape [P]
        Original words, -100 at places that were not chosen.
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
    """Return a view of texts in which `share` of their words are replaced at random."""
    draw = torch.rand(ids.shape, device=ids.device)
    chosen = (draw < share) & mask & ~torch.isin(ids, model.special)
    random_words = torch.randint(model.backbone.shape.vocabulary, ids.shape, device=ids.device)
    return torch.where(chosen, random_words, ids)


class MaskedWords:
    """Masked-word modelling: masks batches and computes the loss.

    Parameters
    ----------
    model : EncoderFeatures
    share : float
        Share of words to mask.
    """

    def __init__(self, model: EncoderFeatures, share: float) -> None:
        encoder = model.encoder
        assert encoder.mask_id is not None
        self.mask_id, self.share, self.words = encoder.mask_id, share, model.backbone.words
        self.head = MaskedWordHead(model.backbone.shape).to(model.device)
        if encoder.word_head is not None:
            self.head.load_state_dict(encoder.word_head)
        self.special = model.special

    def mask(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return (masked ids, places, words), see `mask_words`."""
        vocabulary = self.words.num_embeddings
        return mask_words(ids, mask, self.special, self.mask_id, vocabulary, self.share)

    def loss(self, hidden: Tensor, places: Tensor, words: Tensor) -> Tensor:
        """Return the loss from the hidden states [B, L, width] of masked ids."""
        return masked_word_loss(self.head(hidden.flatten(0, 1)[places], self.words), words)
