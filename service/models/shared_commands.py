"""What the commands of ``parsebank models`` share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from service.settings import Settings

ModelsDir = Annotated[
    Path | None, typer.Option(help="Folder of further models (PARSEBANK_MODELS_DIR).")
]


def models_folder(settings: Settings) -> Path:
    """The models folder that the settings name.

    Raises:
        SpecError: They name none.
    """
    from syntax.errors import SpecError

    if settings.models_dir is None:
        raise SpecError(
            "there is no models folder; name one with --models-dir, or set PARSEBANK_MODELS_DIR "
            "so that the service finds it too"
        )
    return settings.models_dir
