"""A stock encoder whose attention reads a dependency tree: Syntax-MBERT, for BERT and XLM-R.

Ahmad et al. 2021, "Syntax-augmented Multilingual BERT for Cross-lingual Transfer"
(https://aclanthology.org/2021.acl-long.350). A graph encoder over the tree gives each piece a
state g; g biases the attention of the first heads in chosen layers; probes on g may add
auxiliary losses. Paper and release differ in places: `trainer.switches.SYNTAX_MBERT`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, PreTrainedModel
from transformers.utils.generic import ModelOutput

from syntax.errors import SpecError
from trainer.batch import SyntaxBatch
from trainer.models.attention import check_reads_syntax
from trainer.models.bias import AttentionBias
from trainer.models.config import SyntaxBertConfig
from trainer.models.gat import AdditiveGraphAttention, DotProductGraphAttention, GraphEncoder
from trainer.models.heads import SequenceClassificationHead
from trainer.objectives import OBJECTIVES
from trainer.objectives.structure import DepthProbe, DistanceProbe

NO_LABEL = -1
"""The class id of an example without a label; such examples take no part in the loss."""

_OWN_RESET = (AdditiveGraphAttention, DotProductGraphAttention, DistanceProbe, DepthProbe)


@dataclass
class SyntaxEncoding(ModelOutput):
    """What the encoder gives.

    Attributes:
        last_hidden_state: The encoder's states. *Shape:* (B, L, D).
        syntax_states: The graph encoder's states. *Shape:* (B, L, G).
        attentions: One (B, N, L, L) per layer, when asked for with the eager implementation.
    """

    last_hidden_state: Tensor | None = None
    syntax_states: Tensor | None = None
    attentions: tuple[Tensor, ...] | None = None


@dataclass
class SyntaxClassification(ModelOutput):
    """What a classifier gives.

    Attributes:
        loss: What training minimises: ``task_loss`` plus, in training mode only, the weighted
            objectives. (The release also adds them when it evaluates.)
        task_loss: Cross-entropy; absent when the batch has no labels.
        objectives: Each auxiliary loss by name, unweighted.
        logits: *Shape:* (B, labels), float32.
    """

    loss: Tensor | None = None
    task_loss: Tensor | None = None
    objectives: dict[str, Tensor] | None = None
    logits: Tensor | None = None


class SyntaxBertPreTrainedModel(PreTrainedModel):
    """What our encoder and classifiers share: configuration class and initial weights."""

    config_class = SyntaxBertConfig
    base_model_prefix = "syntax_bert"
    main_input_name = "batch"
    _supports_sdpa = True

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, _OWN_RESET):
            module.reset_parameters()
        else:
            super()._init_weights(module)  # type: ignore[no-untyped-call]


class SyntaxBertModel(SyntaxBertPreTrainedModel):
    """The encoder: states of the pieces, with syntax in the attention.

    Args:
        config: What to build.
        encoder: A pretrained encoder to take instead of a new one; it must read syntax
            (`trainer.models.attention`).

    Raises:
        SpecError: The encoder's attention would ignore syntax.
    """

    def __init__(self, config: SyntaxBertConfig, encoder: PreTrainedModel | None = None) -> None:
        super().__init__(config)
        self.encoder = encoder if encoder is not None else new_encoder(config)
        self.gat = self.bias = None
        if config.use_syntax:
            self.gat, self.bias = _graph_encoder(config), _attention_bias(config)
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(self, batch: SyntaxBatch, **options: Any) -> SyntaxEncoding:
        """Encode a batch; ``options`` go to the encoder (such as ``output_attentions``)."""
        states_BLG = None
        if self.gat is not None and self.bias is not None:
            check_reads_syntax(self.encoder.config._attn_implementation)
            words_BLD = self.encoder.get_input_embeddings()(batch.input_ids_BL)
            states_BLG = self.gat(words_BLD, batch)
            options["syntax"] = self.bias(states_BLG)
        output = self.encoder(
            input_ids=batch.input_ids_BL,
            attention_mask=batch.attention_mask_BL.long(),
            token_type_ids=batch.token_type_ids_BL,
            **options,
        )
        return SyntaxEncoding(output.last_hidden_state, states_BLG, output.get("attentions"))


class SyntaxBertForSequenceClassification(SyntaxBertPreTrainedModel):
    """The encoder with a classifier over [CLS] and the auxiliary objectives.

    Args:
        config: What to build.
        encoder: As for `SyntaxBertModel`.
    """

    def __init__(self, config: SyntaxBertConfig, encoder: PreTrainedModel | None = None) -> None:
        super().__init__(config)
        self.syntax_bert = SyntaxBertModel(config, encoder)
        width, labels = config.encoder_config().hidden_size, config.num_labels
        assert labels is not None
        self.classifier = SequenceClassificationHead(width, labels, config.classifier_dropout)
        weighted = config.use_syntax and config.structure_weight > 0
        names = config.objectives if weighted else []
        self.objectives = nn.ModuleList(OBJECTIVES[name](config) for name in names)
        self.objective_names = tuple(names)
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(self, batch: SyntaxBatch) -> SyntaxClassification:
        """Logits, and the losses when the batch carries the label that the model was built for."""
        encoding = self.syntax_bert(batch)
        logits = self.classifier(encoding.last_hidden_state).float()
        objectives = {
            name: objective(encoding.syntax_states, batch)
            for name, objective in zip(self.objective_names, self.objectives, strict=True)
        }
        labels_B = batch.labels.get(self.config.label)
        if labels_B is None:
            return SyntaxClassification(objectives=objectives, logits=logits)
        task_loss = F.cross_entropy(logits, labels_B, ignore_index=NO_LABEL)
        loss = task_loss
        if self.training and objectives:
            loss = loss + self.config.structure_weight * sum(objectives.values())
        return SyntaxClassification(loss, task_loss, objectives, logits)


def new_encoder(config: SyntaxBertConfig) -> PreTrainedModel:
    """A stock encoder with random weights, whose attention is ours.

    Raises:
        SpecError: Its family is not one that the interface was tried with.
    """
    encoder_config = config.encoder_config()
    check_family(encoder_config.model_type)
    encoder: PreTrainedModel = AutoModel.from_config(
        encoder_config, attn_implementation=config.attention, add_pooling_layer=False
    )
    return encoder


def check_family(model_type: str) -> None:
    """Refuse an encoder that may not hand ``syntax`` down to its attention.

    Raises:
        SpecError: The family is neither BERT nor XLM-R (or RoBERTa, which shares its code).
    """
    if model_type not in ("bert", "roberta", "xlm-roberta"):
        raise SpecError(
            f"the encoder is of type {model_type!r}; syntax reaches the attention of bert, "
            "roberta and xlm-roberta encoders"
        )


def _graph_encoder(config: SyntaxBertConfig) -> GraphEncoder:
    encoder = config.encoder_config()
    return GraphEncoder(
        encoder.hidden_size,
        variant=config.gat,
        layers=config.gat_layers,
        heads=config.gat_heads,
        head_size=config.gat_head_size,
        dropout=config.gat_dropout,
        max_distance=config.max_distance,
        use_upos=config.use_upos,
        use_deprel=config.use_deprel,
        eps=encoder.layer_norm_eps,
    )


def _attention_bias(config: SyntaxBertConfig) -> AttentionBias:
    encoder = config.encoder_config()
    layers = range(encoder.num_hidden_layers)
    return AttentionBias(
        config.syntax_size,
        config.syntax_heads,
        encoder.hidden_size // encoder.num_attention_heads,
        layers if config.syntax_layers is None else config.syntax_layers,
        encoder.num_hidden_layers,
        config.attention_bias,
    )


AutoConfig.register(SyntaxBertConfig.model_type, SyntaxBertConfig)
AutoModel.register(SyntaxBertConfig, SyntaxBertModel)
AutoModelForSequenceClassification.register(SyntaxBertConfig, SyntaxBertForSequenceClassification)
