"""Syntax-MBERT (Ahmad et al. 2021, https://aclanthology.org/2021.acl-long.350).

``syntax_gat.v1`` is its graph encoder alone, to be trained on trees before a task.
"""

from trainer.systems.base import SYSTEMS, System
from trainer.systems.syntax_mbert.options import SWITCHES, SyntaxBertOptions, SyntaxGatOptions

SYSTEMS.add(
    "syntax_bert.v1",
    System(
        options=SyntaxBertOptions,
        encoder="trainer.systems.syntax_mbert.encoder:SyntaxBertEncoder",
        recipes="trainer.systems.syntax_mbert.recipes",
        switches=SWITCHES,
    ),
)
SYSTEMS.add(
    "syntax_gat.v1",
    System(
        options=SyntaxGatOptions,
        encoder="trainer.systems.syntax_mbert.encoder:SyntaxGatEncoder",
        recipes="trainer.systems.syntax_mbert.recipes",
        switches=SWITCHES,
    ),
)
