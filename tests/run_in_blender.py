"""Run tests/blender inside a Blender program.

`blender --background --python tests/run_in_blender.py -- [paths, from the project's root] [pytest arguments]`

Blender's exit code does not tell how a script ended: CCD_RIG_RESULT names the file for the result, as JSON.
BLENDER_USER_RESOURCES must name an empty folder.
"""

import json
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE / "blender"))

from module_alone import MODULE_ALONE  # noqa: E402

arguments = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []
files = [argument for argument in arguments if (HERE.parent / argument).exists()]
# pytest runs what is named, whatever `collect_ignore` says.
alone = {HERE / "blender" / name for name in MODULE_ALONE}
paths = [str(HERE.parent / file) for file in files if HERE.parent / file not in alone]
paths = paths or [str(HERE / "blender")]
options = [argument for argument in arguments if argument not in files]
code = pytest.main([*paths, f"--rootdir={HERE.parent}", "-p", "no:cacheprovider", *options])
Path(os.environ["CCD_RIG_RESULT"]).write_text(json.dumps({"exit": int(code)}))
sys.stdout.flush()
sys.stderr.flush()
os._exit(int(code))  # a failed test may have left a class registered, which can hang Blender's shutdown
