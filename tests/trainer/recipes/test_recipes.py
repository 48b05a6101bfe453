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
from trainer.recipes import RECIPES, switches
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


MBERT = (
    "gat_layers=4; gat_heads=4; gat_head_size=64; syntax_heads=1; syntax_layers=null; "
    "learning_rate=2e-5; epsilon=1e-8; weight_decay=0; batch_size=32; epochs=5; clip_norm=1; "
    "warmup_steps=0; evaluate_every=2000; max_length=128; max_distance=4"
)
TAGGER = "max_distance=1; epochs=10; syntax_heads=1; max_length=128"
SGNET = (
    "encoder=bert-large-cased-whole-word-masking; alpha=0.5; mask=as_published; epochs=3; "
    "aggregation=as_published; warmup_share=0.1; weight_decay=0.01; data.policy=broadcast; "
    "joint_root=false; separator_edge=none; data.max_length=384; batch_size=16"
)
SLA = (
    "threshold=3; local_layers=null; punctuation=false; learning_rate=3e-5; batch_size=16; "
    "epochs=2; seed=17; data.policy=broadcast"
)
GATE = (
    "prune=-1; layers=1; heads=8; head_size=64; feed_forward=2048; tag_size=30; "
    "model.dropout=0.5; layer_dropout=0.5; optimizer=sgd; learning_rate=0.1; schedule=plateau; "
    "decay=0.9; decay_after=5; batch_size=50; clip_norm=5; epochs=200; patience=20; seed=1013; "
    "evaluate_every=epoch"
)
ORDERFREE = (
    "words=vectors; position=relative; root_position=first; betas=0.9,0.9; epsilon=1e-4; "
    "weight_decay=0; decay=0.75; restart_after=20; restart_double=5; evaluate_epochs=5; "
    "warmup_epochs=1; epochs=1000"
)
SELFATT = f"{ORDERFREE}; context=selfatt; learning_rate=1e-4; batch_size=80; word_dropout=0.2"
RNN = f"{ORDERFREE}; context=rnn; learning_rate=1e-3; batch_size=32; word_dropout=0.33"
MICROBERT_UD = (
    "task.parser.states=mix; task.parser.pieces=mean; task.parser.tag_width=0; "
    "task.parser.context=highway_lstm; task.parser.context_layers=3; "
    "task.parser.context_width=400; task.parser.context_dropout=0.3; "
    "task.parser.recurrent_dropout=0.3; task.parser.dropout=0.3; task.parser.shared_dropout=true; "
    "task.parser.arc=100; task.parser.relation=100; clip_value=5; clip_norm=0; batch_size=16; "
    "patience=50; evaluate_every=200; training.learning_rate=1e-3; metric=las_no_punct_subtypes"
)
PRONTO = (
    "learning_rate=2e-5; batch_size=16; weight_decay=0.01; schedule=linear; warmup_steps=0; "
    "keep=lowest_loss; evaluate_every=epoch; max_length=512; metric=accuracy"
)
TRANSLATION = (
    "model.layers=6; hidden_size=512; model.heads=8; feed_forward=2048; layer_dropout=0.1; "
    "smoothing=0.1; beam=5; batch_tokens=16384; max_steps=300000; betas=0.9,0.98; epsilon=1e-9; "
    "data.policy=broadcast"
)
FIGURES = {
    # Ahmad et al. 2021, table 4.
    "xnli": MBERT,
    "pawsx": MBERT,
    "wikiann": TAGGER,
    "conll": TAGGER,
    "mtop": f"{TAGGER}; syntax_heads=2; max_length=96",
    "matis": TAGGER,
    # Zhang et al. 2020, and the released scripts.
    "sgnet-snli": f"{SGNET}; learning_rate=2e-5; batch_size=32; data.max_length=128",
    "sgnet-race": f"{SGNET}; learning_rate=8e-6; truncation_side=left",
    "sgnet-race-as-released": "batch_size=8",
    "sgnet-squad2": f"{SGNET}; learning_rate=3e-5; stride=128; segment_limits=[null, 64]; "
    'template=["passage question"]; no_answer=true; tune_threshold=true; max_answer=30',
    "sgnet-squad2-as-released": "batch_size=8",
    "sgnet-squad2-verifier": "label=answerable",
    # The same, section 5.2.
    "translation": TRANSLATION,
    "sgnet-translation": TRANSLATION,
    # Li et al. 2021, the authors' scripts, and lr-sib.
    "sla-cola": f"{SLA}; metric=mcc; pooler=false",
    "sla-sst2": f"{SLA}; metric=accuracy",
    "sla-fce": f"{SLA}; metric=f05",
    "sla-cola-as-released": "window=as_published; gate=as_released; punctuation=pieces; "
    "pooler=true",
    "sla-sst2-as-released": "pooler=true",
    "sla-fce-as-released": "positive=null; metric=f05",
    "sla-cola-lr-sib": "window=as_released; gate=as_published; punctuation=false; threshold=4",
    # Ahmad et al. 2021 (AAAI), and the released scripts. These tell ten relative positions apart;
    # the dissertation's Table 4.5 has 5 for relations.
    "gate-relation": f"{GATE}; deltas=[2, 2, 4, 4]; use_types=false",
    "gate-event": f"{GATE}; deltas=[1, 1, 1, 1]; use_types=true",
    "gate-relation-as-released": "prune=1",
    "gate-relation-relative": "max_position=5",
    "gate-relation-structural": "max_position=5",
    "gate-relation-gcn": "optimizer=sgd; learning_rate=0.1; context_width=200; model.layers=2; "
    "layer_dropout=0.5; tag_size=30; batch_size=50; seed=1111; clip_norm=5",
    "gate-event-rnn": "learning_rate=0.001; context_width=300; model.layers=1; "
    "layer_dropout=0.5; tag_size=30; batch_size=50; seed=1111; clip_norm=5",
    "gate-event-relative": "positions=sequence; max_position=10; use_syntax=false; use_types=true",
    "gate-event-structural": "positions=structure; max_position=10; use_syntax=false",
    "gate-relation-relative-as-released": "max_position=10",
    "gate-relation-structural-as-released": "max_position=10",
    # Ahmad et al. 2019.
    "orderfree-selfatt-graph": f"{SELFATT}; parser_dropout=0.2; single_root=false",
    "orderfree-rnn-graph": f"{RNN}; parser_dropout=0.33; single_root=false; tag_dropout=0",
    "orderfree-rnn-stack": f"{RNN}; parser_dropout=0.33; tag_dropout=0.33; input_dropout=0.33; "
    "state_dropout=0.33",
    "orderfree-selfatt-graph-delex": "model.words=none",
    "orderfree-rnn-graph-delex": "model.words=none",
    # MicroBERT's parser_eval.jsonnet, and its paper.
    "microbert-ud": MICROBERT_UD,
    "microbert-ud-frozen": MICROBERT_UD,
    "microbert-mlm": "batch_size=32; accumulation=8; max_steps=62500; betas=0.9,0.98; "
    "epsilon=1e-6; clip_norm=0; schedule=cosine; warmup_steps=10000; keep=last; gold_every=8",
    # Gessler 2023, and its released evaluation.
    **{name: f"{PRONTO}; epochs=10" for name in RECIPES if name.startswith("pronto-")},
    **dict.fromkeys(("pronto-sentence-mood", "pronto-sentence-mood-sla"), f"{PRONTO}; epochs=20"),
    # UD-PrLM, and its released scripts.
    "udprlm-phase-1": "max_steps=600000; batch_size=128; learning_rate=5e-5; betas=0.9,0.98; "
    "epsilon=1e-6; weight_decay=0.01; data.max_length=384; streams.ud.data.max_length=256; "
    "usi=false; streams.ud.share=1; streams.ud.joins=true",
    "udprlm-phase-2": "usi=true; model.layers=11; streams.ud.share=0.8; streams.ud.joins=true",
    "udprlm-phase-1-as-released": "batch_size=6; accumulation=2; streams.ud.share=0.8; clip_norm=5",
    "udprlm-phase-2-corrected": "neighbours=corrected; mixing=corrected",
    # Ahmad et al. 2021 (PLBART), sections 2.2 and 2.3.
    "plbart": "model.layers=6; hidden_size=768; model.heads=12; feed_forward=3072; "
    "layer_dropout=0.1; dropouts=0.05,0; batch_size=32; accumulation=64; max_steps=100000; "
    "warmup_steps=2000; learning_rate=3e-4; betas=0.9,0.98; epsilon=1e-6",
    "plbart-generation": "learning_rate=3e-5; batch_size=32; patience=10",
}


@pytest.mark.parametrize(("name", "figures"), FIGURES.items(), ids=FIGURES)
def test_recipes_have_the_figures_of_papers_and_scripts(name, figures) -> None:
    recipe = RECIPES[name]()
    assert with_settings(recipe, figures.split("; ")) == recipe


ALPHA = {"xnli": 1.0, "pawsx": 1.0, "wikiann": 0.5, "mtop": 1.0}
"""Weight of the auxiliary losses in the shipped scripts."""
PAPER = {"xnli": 0.0, "pawsx": 0.5, "wikiann": 0.5, "conll": 1.0, "mtop": 2.0, "matis": 0.2}


@pytest.mark.parametrize(
    ("name", "alpha"),
    [*PAPER.items(), *((f"{name}-as-released", alpha) for name, alpha in ALPHA.items())],
)
def test_both_auxiliary_losses_weigh_what_paper_or_script_say(name, alpha) -> None:
    found = {objective.name: objective.weight for objective in RECIPES[name]().objectives}
    assert found == {"tree_distance.v1": alpha, "tree_depth.v1": alpha}


def test_the_verifier_of_sg_net_is_trained_as_the_reader() -> None:
    assert RECIPES["sgnet-squad2-verifier"]().training == RECIPES["sgnet-squad2"]().training


@pytest.mark.parametrize("name", [name for name in RECIPES if name.startswith("pronto-")])
def test_tasks_of_pronto_read_a_sense_where_they_compare_it(name) -> None:
    recipe = RECIPES[name]()
    assert recipe.data.dataset in BENCHMARKS
    assert recipe.task.item == ("sense" if "-same-" in name else None)


OWN = switches()
RELEASED = {
    **dict.fromkeys(("xnli", "pawsx"), OWN["syntax_bert.v1"]),
    **dict.fromkeys(("wikiann", "mtop"), (*OWN["syntax_bert.v1"], *OWN["intent_slots.v1"])),
    **dict.fromkeys(
        (
            *("gate-relation", "gate-relation-relative", "gate-relation-structural"),
            "gate-relation-gcn",
        ),
        (*OWN["gate.v1"], *OWN["relation.v1"]),
    ),
    "sgnet-squad2": OWN["sgnet.v1"],
    "sgnet-race": OWN["sgnet.v1"][:-1],
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
the last two of UD-PrLM are corrections; RACE mixes special tokens in both."""


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


@pytest.mark.parametrize("name", ["sgnet-squad2", "sgnet-race"])
def test_the_releases_of_sg_net_are_trained_as_their_scripts_train_them(name) -> None:
    """``run_squad.sh``, ``run_race.sh`` and the defaults of what they start."""
    published, released = RECIPES[name](), RECIPES[f"{name}-as-released"]()
    assert (released.data.policy, released.training.seed) == ("attach", 42)
    batches = {"batch_size": 16, "evaluation_batch_size": 16}
    assert replace(released.training, seed=0, **batches) == published.training
    assert replace(released.data, policy="broadcast") == published.data
    assert getattr(released.task, "tune_threshold", False) is False


@pytest.mark.slow
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
