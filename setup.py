"""What pyproject.toml cannot say: a wheel holds the clone's programs too, as margo/share. An editable install uses them
where they are."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

FOLDERS = ("steps", "local", "recipes", "conf")
KINDS = {".py", ".sh", ".toml", ".txt", ".dic"}


class WithPrograms(build_py):
    def run(self):
        super().run()
        if self.editable_mode:
            return
        for source in (path for folder in FOLDERS for path in Path(folder).rglob("*") if path.suffix in KINDS):
            target = Path(self.build_lib) / "margo" / "share" / source
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


setup(cmdclass={"build_py": WithPrograms})
