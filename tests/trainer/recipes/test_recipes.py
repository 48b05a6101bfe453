from __future__ import annotations

import inspect
import json
import re
from dataclasses import replace

import pytest

from clients.benchmarks import BENCHMARKS
from syntax.errors import SpecError, UnknownNameError
from syntax.options import options_of
from syntax.variant import check_variant
from tests.syntax.batches_cases import DOGS, assemble
from trainer.data import features_of
from trainer.objectives import OBJECTIVES
from trainer.options import DataOptions, Recipe, TrainingOptions
from trainer.options.settings import described, options, recipe_from_json, with_settings
from trainer.recipes import RECIPES
from trainer.recipes.switches import switches
from trainer.systems import SYSTEMS
from trainer.tasks import TASKS

SYSTEM_OPTIONS = {name: system.options for name, system in SYSTEMS.items()}
TASK_OPTIONS = [task.options for task in TASKS.values()]


@pytest.mark.parametrize("name", list(RECIPES))
def test_every_recipe_says_what_it_is_and_survives_json(name) -> None:
    recipe = RECIPES[name]()
    assert recipe.name == name
    assert RECIPES[name].__doc__
    assert recipe_from_json(json.loads(json.dumps(recipe.to_json()))) == recipe


@pytest.mark.parametrize("name", list(RECIPES))
def test_every_recipe_says_where_its_figures_come_from(name) -> None:
    described = inspect.getdoc(inspect.getmodule(RECIPES[name])) or ""
    assert re.search(
        r"(et al\.|and \w+,?) \(?\d{4}|commits? \w{7}|our own choice|No paper has", described
    )


@pytest.mark.parametrize("name", list(RECIPES))
def test_every_recipe_reads_labels_that_its_benchmark_has(name) -> None:
    recipe = RECIPES[name]()
    if recipe.data.dataset in BENCHMARKS:
        labels = {label.name for label in BENCHMARKS[recipe.data.dataset].labels}
        assert set(recipe.task.columns()) <= labels


def weights(recipe: Recipe) -> dict[str, float]:
    """The weight of each objective."""
    return {objective.name: objective.weight for objective in recipe.objectives}


@pytest.mark.parametrize(("name", "delta", "alpha"), [("xnli", 4, 0.0), ("pawsx", 4, 0.5)])
def test_published_hyper_parameters(name, delta, alpha) -> None:
    """Ahmad et al. 2021, table 4."""
    recipe = RECIPES[name]()
    model, training = recipe.model, recipe.training
    assert model.max_distance == delta
    assert weights(recipe) == {"tree_distance.v1": alpha, "tree_depth.v1": alpha}
    assert (model.gat_layers, model.gat_heads, model.gat_head_size) == (4, 4, 64)
    assert (model.syntax_heads, model.syntax_layers) == (1, None)
    assert (training.learning_rate, training.epsilon, training.weight_decay) == (2e-5, 1e-8, 0.0)
    assert (training.batch_size, training.epochs, training.clip_norm) == (32, 5, 1.0)
    assert (training.warmup_steps, training.evaluate_every) == (0, 2000)
    assert recipe.data.max_length == 128


@pytest.mark.parametrize(
    ("name", "heads", "alpha", "length"),
    [
        ("wikiann", 1, 0.5, 128),
        ("conll", 1, 1.0, 128),
        ("mtop", 2, 2.0, 96),
        ("matis", 1, 0.2, 128),
    ],
)
def test_published_hyper_parameters_of_the_taggers(name, heads, alpha, length) -> None:
    """Ahmad et al. 2021, table 4."""
    recipe = RECIPES[name]()
    model = recipe.model
    assert (model.max_distance, model.syntax_heads) == (1, heads)
    assert weights(recipe) == {"tree_distance.v1": alpha, "tree_depth.v1": alpha}
    assert (recipe.data.max_length, recipe.training.epochs) == (length, 10)


@pytest.mark.parametrize("name", ["sgnet-snli", "sgnet-race", "sgnet-squad2"])
def test_published_hyper_parameters_of_sg_net(name) -> None:
    """Zhang et al. 2020, and the released scripts."""
    recipe = RECIPES[name]()
    data, model, training = recipe.data, recipe.model, recipe.training
    rates = {"sgnet-snli": (2e-5, 32), "sgnet-race": (8e-6, 16), "sgnet-squad2": (3e-5, 16)}
    assert model.encoder == "bert-large-cased-whole-word-masking"
    assert (model.alpha, model.mask, model.aggregation) == (0.5, "as_published", "as_published")
    assert (training.learning_rate, training.batch_size) == rates[name]
    assert (training.epochs, training.warmup_share, training.weight_decay) == (3, 0.1, 0.01)
    if name != "sgnet-snli":
        assert RECIPES[f"{name}-as-released"]().training.batch_size == 8
    assert data.max_length == (128 if name == "sgnet-snli" else 384)
    assert (data.policy, data.joint_root, data.separator_edge) == ("broadcast", False, "none")


def test_published_windows_of_sg_net_on_squad() -> None:
    recipe, verifier = RECIPES["sgnet-squad2"](), RECIPES["sgnet-squad2-verifier"]()
    data, task = recipe.data, recipe.task
    assert (data.stride, data.segment_limits) == (128, (None, 64))
    assert data.template == ("passage question",)
    assert (task.no_answer, task.tune_threshold, task.max_answer) == (True, True, 30)
    assert verifier.task.label == "answerable"
    assert verifier.training == recipe.training


@pytest.mark.parametrize(
    ("name", "metric"), [("sla-cola", "mcc"), ("sla-sst2", "accuracy"), ("sla-fce", "f05")]
)
def test_published_hyper_parameters_of_local_attention(name, metric) -> None:
    """Li et al. 2021, and the authors' scripts."""
    recipe = RECIPES[name]()
    model, training = recipe.model, recipe.training
    assert (model.threshold, model.local_layers, model.punctuation) == (3, None, False)
    assert (training.learning_rate, training.batch_size, training.epochs) == (3e-5, 16, 2)
    assert (training.seed, recipe.task.metric, recipe.data.policy) == (17, metric, "broadcast")


@pytest.mark.parametrize(
    ("name", "deltas"), [("gate-relation", (2, 2, 4, 4)), ("gate-event", (1, 1, 1, 1))]
)
def test_published_hyper_parameters_of_gate(name, deltas) -> None:
    """Ahmad et al. 2021 (AAAI), and the released scripts."""
    recipe = RECIPES[name]()
    model, training = recipe.model, recipe.training
    assert (model.deltas, model.prune, model.use_types) == (deltas, -1, name == "gate-event")
    assert (model.layers, model.heads, model.head_size, model.feed_forward) == (1, 8, 64, 2048)
    assert (model.tag_size, model.dropout, model.layer_dropout) == (30, 0.5, 0.5)
    assert RECIPES["gate-relation-as-released"]().model.prune == 1
    assert (training.optimizer, training.learning_rate) == ("sgd", 0.1)
    assert (training.schedule, training.decay, training.decay_after) == ("plateau", 0.9, 5)
    assert (training.batch_size, training.clip_norm, training.epochs) == (50, 5.0, 200)
    assert (training.patience, training.seed, training.evaluate_every) == (20, 1013, "epoch")


@pytest.mark.parametrize("baseline", ["relative", "structural"])
def test_the_scripts_of_gate_tell_ten_relative_positions_apart(baseline) -> None:
    """`--max_relative_pos 10`; the dissertation's Table 4.5 has 5 for relations."""
    assert RECIPES[f"gate-relation-{baseline}"]().model.max_position == 5
    assert RECIPES[f"gate-relation-{baseline}-as-released"]().model.max_position == 10


@pytest.mark.parametrize(
    ("encoder", "rate", "batch", "dropout"), [("selfatt", 1e-4, 80, 0.2), ("rnn", 1e-3, 32, 0.33)]
)
def test_published_hyper_parameters_of_the_order_free_parser(encoder, rate, batch, dropout) -> None:
    recipe = RECIPES[f"orderfree-{encoder}-graph"]()
    model, training = recipe.model, recipe.training
    assert (model.context, model.words, model.word_dropout) == (encoder, "vectors", dropout)
    assert (model.position, model.root_position) == ("relative", "first")
    assert (recipe.task.parser_dropout, recipe.task.single_root) == (dropout, False)
    assert (training.learning_rate, training.batch_size) == (rate, batch)
    assert (training.betas, training.epsilon, training.weight_decay) == ((0.9, 0.9), 1e-4, 0.0)
    assert (training.decay, training.restart_after, training.restart_double) == (0.75, 20, 5)
    assert (training.evaluate_epochs, training.warmup_epochs, training.epochs) == (5, 1, 1000)
    assert RECIPES[f"orderfree-{encoder}-graph-delex"]().model.words == "none"


ALPHA = {"xnli": 1.0, "pawsx": 1.0, "wikiann": 0.5, "mtop": 1.0}
"""Weight of the auxiliary losses in the shipped scripts."""
OWN = switches()
RELEASED = {
    **dict.fromkeys(("xnli", "pawsx"), OWN["syntax_bert.v1"]),
    **dict.fromkeys(("wikiann", "mtop"), (*OWN["syntax_bert.v1"], *OWN["intent_slots.v1"])),
    **dict.fromkeys(
        ("gate-relation", "gate-relation-relative", "gate-relation-structural"),
        (*OWN["gate.v1"], *OWN["relation.v1"]),
    ),
    **dict.fromkeys(("sgnet-squad2", "sgnet-race"), OWN["sgnet.v1"]),
    **dict.fromkeys(
        ("orderfree-selfatt-graph", "orderfree-selfatt-graph-delex"),
        (*OWN["orderfree.v1"], *OWN["graph_parser.v1"]),
    ),
    **dict.fromkeys(("sla-cola", "sla-sst2", "sla-fce"), OWN["sla.v1"][1:]),
    **dict.fromkeys(("udprlm-phase-1", "udprlm-phase-2"), OWN["udprlm.v1"][:3]),
    "pascal-mlm": OWN["pascal.v1"],
    "clm-treereg": OWN["tree_reg.v1"],
    "plbart": OWN["denoising.v1"],
    "synclm": (),
    **dict.fromkeys(("microbert-ud", "microbert-ud-frozen"), OWN["dependency.v1"][:1]),
    "microbert-ner": (),
    **dict.fromkeys(
        [f"microbert-mlm-xpos{end}" for end in ("", "-phrase", "-tree", "-phrase-tree")]
        + ["microbert-mlm-xpos-phrase-tree-sla"],
        (OWN["microbert.v1"][0], *OWN["xpos_tagging.v1"]),
    ),
    "adversarial": OWN["adversary.v1"],
}
"""Runs with a released twin, and the switches that it turns: SLA's window is of lr-sib, SynCLM's
switches have values of their own (test_contrastive_runs.py), those of MicroBERT's tagger, too, and
the last two of UD-PrLM are corrections."""


def test_every_released_run_is_looked_at() -> None:
    twins = {f"{name}-as-released" for name in RELEASED}
    assert twins == {name for name in RECIPES if name.endswith("-as-released")}


@pytest.mark.parametrize("name", RELEASED)
def test_every_switch_is_published_by_default_and_released_on_demand(name) -> None:
    runs = {"as_published": RECIPES[name](), "as_released": RECIPES[f"{name}-as-released"]()}
    for switch in RELEASED[name]:
        for variant, recipe in runs.items():
            values = {key: value for key, _, value in described(recipe)}
            assert values[switch.option] == variant, switch.option


@pytest.mark.parametrize(("name", "alpha"), ALPHA.items())
def test_released_runs_weigh_the_losses_as_the_scripts_do(name, alpha) -> None:
    assert set(weights(RECIPES[f"{name}-as-released"]()).values()) == {alpha}


@pytest.mark.parametrize("name", ["sgnet-squad2", "sgnet-race"])
def test_the_releases_of_sg_net_are_trained_as_their_scripts_train_them(name) -> None:
    """``run_squad.sh``, ``run_race.sh`` and the defaults of what they start."""
    published, released = RECIPES[name](), RECIPES[f"{name}-as-released"]()
    assert (released.data.policy, released.training.seed) == ("attach", 42)
    batches = {"batch_size": 16, "evaluation_batch_size": 16}
    assert replace(released.training, seed=0, **batches) == published.training
    assert replace(released.data, policy="broadcast") == published.data
    assert getattr(released.task, "tune_threshold", False) is False


def test_the_mask_of_the_script_convert_span_can_be_chosen() -> None:
    recipe = with_settings(RECIPES["sgnet-race-as-released"](), ["mask=convert_span"])
    assert recipe.model.matrices() == ("sgnet_mask(variant=convert_span)",)


def test_local_attention_has_two_releases() -> None:
    authors, other = RECIPES["sla-cola-as-released"]().model, RECIPES["sla-cola-lr-sib"]().model
    assert (authors.window, authors.gate) == ("as_published", "as_released")
    assert (other.window, other.gate) == ("as_released", "as_published")
    assert (authors.punctuation, other.punctuation, other.threshold) == ("pieces", False, 4)


def test_released_local_attention_classifies_from_the_pooler_and_tags_spans() -> None:
    tasks = {name: RECIPES[f"sla-{name}-as-released"]().task for name in ("cola", "sst2", "fce")}
    assert (tasks["cola"].pooler, tasks["sst2"].pooler) == (True, True)
    assert (tasks["fce"].positive, tasks["fce"].metric) == (None, "f05")
    assert not RECIPES["sla-cola"]().task.pooler


@pytest.mark.parametrize("name", ["wikiann-as-released", "mtop-as-released"])
def test_the_released_taggers_hang_the_separator_of_one_text_from_cls(name) -> None:
    """The release's own pairs hang it from the last piece; its taggers never did."""
    edge = features_of(RECIPES[name]().data)["separator_edge"]
    batch = assemble([DOGS], separator_edge=edge)
    assert batch["parents"].tolist() == assemble([DOGS])["parents"].tolist()


@pytest.mark.parametrize(
    ("section", "kind"),
    [
        *(("model", kind) for kind in SYSTEM_OPTIONS.values()),
        *(("task", kind) for kind in TASK_OPTIONS),
    ],
)
def test_every_option_of_a_variant_is_a_listed_switch(section, kind) -> None:
    objectives = tuple(entry.options() for entry in OBJECTIVES.values())
    recipe = Recipe("any", DataOptions(dataset="any"), objectives=objectives, **{section: kind()})
    variants = {key for key, kind in options(recipe).items() if "as_published" in str(kind)}
    listed = {switch.option for switch in OWN.get(kind().name, ())}
    assert {key for key in variants if key.startswith(section)} <= listed <= variants


def test_options_know_the_name_that_they_are_registered_under() -> None:
    assert all(kind().name == name for name, kind in SYSTEM_OPTIONS.items())
    assert all(task.options().name == name for name, task in TASKS.items())


def test_another_model_keeps_the_options_that_both_have() -> None:
    recipe = with_settings(RECIPES["xnli"](), ["dropout=0.3", "model.name=syntax_bert.v1"])
    assert recipe.model.dropout == 0.3


def test_settings_are_dotted_or_bare_and_typed() -> None:
    recipe = with_settings(
        RECIPES["sample"](),
        [
            *("model.max_distance=7", "learning_rate=1", "syntax_layers=[0, 1]", "lang=de"),
            *("use_syntax=false", "max_steps=null", "data.version=3", "gat=as_released"),
            "dataset = 2024",
        ],
    )
    assert recipe.model.max_distance == 7
    assert recipe.training.learning_rate == 1.0
    assert isinstance(recipe.training.learning_rate, float)
    assert recipe.model.syntax_layers == (0, 1)
    assert recipe.data.lang == "de"
    assert recipe.model.use_syntax is False
    assert recipe.training.max_steps is None
    assert recipe.data.version == 3
    assert recipe.model.gat == "as_released"
    assert recipe.data.dataset == "2024"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("epochs", "has no '='"),
        ("epochs=many", "training.epochs cannot be 'many'; it is int"),
        (f"epochs={'[' * 90_000}", r"training.epochs cannot be '\[\[\[.*; it is int"),
        (f"epochs={'[' * 500}{']' * 500}", r"training.epochs cannot be \[\[\[.*; it is int"),
        ("epochs=2.5", "training.epochs cannot be 2.5"),
        ("epochs=true", "training.epochs cannot be True"),
        ("use_syntax=1", "model.use_syntax cannot be 1; it is bool"),
        ("gat=published", "it is one of 'as_published', 'as_released'"),
        ("max_steps=x", "it is int or null"),
        ("syntax_layers=[x]", r"cannot be '\[x\]'"),
        ("batch_size=0", "training.batch_size is 0; it must be at least 1"),
        ("max_steps=0", "training.max_steps is 0"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_name(setting, message) -> None:
    with pytest.raises(SpecError, match=message):
        with_settings(RECIPES["sample"](), [setting])


def test_an_unknown_option_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match=r"Did you mean 'model\.max_distance'"):
        with_settings(RECIPES["sample"](), ["model.max_distanse=3"])


@pytest.mark.parametrize("content", [{}, {"name": "x", "task": "y", "data": None}])
def test_what_is_no_recipe_is_refused(content) -> None:
    with pytest.raises(SpecError, match="not a recipe"):
        recipe_from_json(content)


def test_a_recipe_of_a_newer_release_is_refused_by_option() -> None:
    content = RECIPES["sample"]().to_json()
    content["model"]["hyperbolic"] = True
    with pytest.raises(UnknownNameError, match=r"model\.hyperbolic"):
        recipe_from_json(content)


def test_a_result_of_before_repeats_with_the_tie_of_then() -> None:
    content = RECIPES["xnli"]().to_json()
    del content["data"]["truncation_tie"]
    recipe = recipe_from_json(content)
    assert features_of(recipe.data)["truncation_tie"] == "slow"
    assert recipe == RECIPES["xnli"]()


@pytest.mark.parametrize("name", list(RECIPES))
def test_every_recipe_cuts_pairs_as_bert_does(name) -> None:
    assert RECIPES[name]().data.truncation_tie == "slow"


def test_every_option_is_described() -> None:
    rows = {key: (kind, value) for key, kind, value in described(RECIPES["xnli"]())}
    assert rows["objectives.tree_distance.weight"] == ("float", 0.0)
    assert rows["training.precision"] == ("one of 'fp32', 'bf16', 'fp16'", "fp32")
    assert len(rows) == len(options(RECIPES["xnli"]()))


@pytest.mark.parametrize(
    "kind", [DataOptions, TrainingOptions, *SYSTEM_OPTIONS.values(), *TASK_OPTIONS]
)
def test_every_option_is_documented_where_it_is_defined(kind) -> None:
    documented = " ".join(base.__doc__ or "" for base in kind.__mro__)
    for name in kind.__dataclass_fields__:
        assert name in documented or name in options_of(kind), name


def test_a_variant_has_two_settings() -> None:
    check_variant("gat", "as_published")
    with pytest.raises(SpecError, match="gat is 'other'"):
        check_variant("gat", "other")


@pytest.mark.parametrize(
    ("recipe", "setting"),
    [
        *((name, "dropout=7") for name in ("xnli", "sgnet-snli", "sla-cola", "gate-relation")),
        *(("xnli", "gat_dropout=-1"), ("gate-relation", "layer_dropout=2")),
        ("gate-relation", "word_dropout=-0.1"),
    ],
)
def test_a_dropout_that_is_no_share_is_refused(recipe, setting) -> None:
    with pytest.raises(SpecError, match=r"dropout is .*; it must be at least 0 and at most 1"):
        with_settings(RECIPES[recipe](), [f"model.{setting}"])


@pytest.mark.parametrize("value", ["NaN", "1e999", "-Infinity"])
def test_options_are_finite_numbers(value) -> None:
    with pytest.raises(SpecError, match="learning_rate cannot be"):
        with_settings(RECIPES["xnli"](), [f"learning_rate={value}"])


def test_an_empty_text_is_an_empty_list() -> None:
    sgnet = RECIPES["sgnet-squad2"]()
    assert sgnet.data.segment_limits
    assert with_settings(sgnet, ["data.segment_limits="]).data.segment_limits == ()
    with pytest.raises(SpecError, match="'1,,2' has an empty item"):
        with_settings(sgnet, ["data.segment_limits=1,,2"])


@pytest.mark.parametrize("name", ["microbert-ud", "microbert-ud-frozen"])
def test_published_parser_of_the_evaluation_of_microbert(name) -> None:
    """The configuration parser_eval.jsonnet of MicroBERT."""
    recipe = RECIPES[name]()
    parser, training = recipe.task.parser, recipe.training
    assert (parser.states, parser.pieces, parser.tag_width) == ("mix", "mean", 0)
    assert (parser.context, parser.context_layers) == ("highway_lstm", 3)
    assert (parser.context_width, parser.context_dropout) == (400, 0.3)
    assert (parser.recurrent_dropout, parser.dropout, parser.shared_dropout) == (0.3, 0.3, True)
    assert (parser.arc, parser.relation) == (100, 100)
    assert (training.clip_value, training.clip_norm) == (5.0, 0.0)
    assert (training.batch_size, training.patience, training.evaluate_every) == (16, 50, 200)
    assert training.learning_rate == 1e-3
    assert recipe.task.metric == "las_no_punct_subtypes"


@pytest.mark.parametrize("name", [name for name in RECIPES if name.startswith("pronto-")])
def test_published_hyper_parameters_of_pronto(name) -> None:
    """Gessler 2023, and its released evaluation."""
    recipe = RECIPES[name]()
    training = recipe.training
    assert recipe.data.dataset in BENCHMARKS
    assert (training.learning_rate, training.batch_size) == (2e-5, 16)
    assert (training.weight_decay, training.schedule, training.warmup_steps) == (0.01, "linear", 0)
    assert training.epochs == (20 if name == "pronto-sentence-mood" else 10)
    assert (training.keep, training.evaluate_every) == ("lowest_loss", "epoch")
    assert (recipe.data.max_length, recipe.task.metric) == (512, "accuracy")
    assert recipe.task.item == ("sense" if "-same-" in name else None)


def test_the_released_tagger_of_microbert_gives_the_encoder_no_rate_of_its_own() -> None:
    published, released = (RECIPES[f"microbert-ner{end}"]() for end in ("", "-as-released"))
    (group,) = published.optimizers[0].groups
    assert (group.parameters, group.learning_rate) == (("encoder",), 1e-5)
    assert released.training == replace(published.training, weight_decay=0.01)
    assert (released.training.learning_rate, released.training.clip_norm) == (1e-3, 5.0)
    (group,) = released.optimizers[0].groups
    assert (group.parameters, group.learning_rate, group.weight_decay) == ((".*",), None, 0.01)
    tagger = replace(published.task.tagger, states="layers", crf_ends=False, crf_loss="sum")
    assert released.task == replace(published.task, tagger=tagger)


@pytest.mark.parametrize(("name", "rate"), [("microbert-ud", 5e-5), ("microbert-ud-frozen", 0.0)])
def test_the_released_parser_of_microbert_decays_and_decodes_as_allennlp_does(name, rate) -> None:
    published, released = (RECIPES[f"{name}{end}"]() for end in ("", "-as-released"))
    assert released.training == replace(published.training, weight_decay=0.01)
    groups = {group.name: group for group in released.optimizers[0].groups}
    assert [(group.learning_rate, group.weight_decay) for group in groups.values()] == [
        (rate, 0.01),
        (None, 0.01),
    ]
    parser = replace(published.task.parser, states="layers")
    expected = replace(published.task, parser=parser, single_root=False, mst_space="as_released")
    assert released.task == expected
