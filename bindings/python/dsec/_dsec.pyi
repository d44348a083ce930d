# The extension module that cffi makes: its names are those of the C headers.
from typing import Any

ffi: Any
lib: Any
