"""Compiles CUDA C++ with NVIDIA's compilers for the GPUs that Brasa names, on a machine without a GPU.

    python3 -m venv cuda
    cuda/bin/pip install nvidia-cuda-nvrtc-cu12==12.9.86 nvidia-cuda-nvcc-cu12==12.9.86 nvidia-cuda-runtime-cu12==12.9.79 nvidia-cuda-cccl-cu12==12.9.27
    cuda/bin/python scripts/check_cuda.py kernel.cu...

NVRTC makes PTX with the options that CubeCL gives it, `ptxas` makes machine code. Prints one line per kernel: registers per
thread on each architecture. Ends with 1 if a kernel does not compile, with 77 if a wheel is missing.
"""

import ctypes
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

# T4, RTX 30, RTX 40, H200, B200, RTX 50. CubeCL selects the variant with `a` from 9.0 on.
ARCHITECTURES = ("75", "86", "89", "90a", "100a", "120a")
WHEELS = Path(sysconfig.get_paths()["purelib"], "nvidia")


class Nvrtc:
    def __init__(self, library):
        self.library = ctypes.CDLL(str(library))

    def text(self, program, kind):
        size = ctypes.c_size_t()
        getattr(self.library, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(self.library, f"nvrtcGet{kind}")(program, buffer)
        return buffer.raw.rstrip(b"\0")

    def ptx(self, source, options):
        """PTX, or the compiler's messages."""
        program = ctypes.c_void_p()
        self.library.nvrtcCreateProgram(ctypes.byref(program), source, b"kernel.cu", 0, None, None)
        array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        failed = self.library.nvrtcCompileProgram(program, len(options), array)
        text = self.text(program, "ProgramLog" if failed else "PTX")
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        return failed, text


def assemble(ptx, architecture, folder):
    """Registers per thread, or the assembler's messages."""
    path = Path(folder, "kernel.ptx")
    path.write_bytes(ptx)
    command = [WHEELS / "cuda_nvcc/bin/ptxas", "-v", f"-arch=sm_{architecture}", path, "-o", Path(folder, "kernel.cubin")]
    run = subprocess.run(command, capture_output=True, text=True)
    registers = re.search(r"Used (\d+) registers", run.stderr)
    spilled = re.search(r"([1-9]\d*) bytes spill", run.stderr)
    ok = run.returncode == 0 and registers is not None
    return ok, registers[1] + (" with spills" if spilled else "") if ok else run.stderr


def main(files):
    libraries = sorted((WHEELS / "cuda_nvrtc/lib").glob("libnvrtc.so*"))
    includes = [WHEELS / part / "include" for part in ("cuda_runtime", "cuda_nvcc", "cuda_cccl")]
    missing = [str(path) for path in [*includes, WHEELS / "cuda_nvcc/bin/ptxas"] if not path.exists()]
    if not libraries or missing:
        print("missing wheels:", "nvidia-cuda-nvrtc-cu12" if not libraries else "", *missing)
        return 77
    if not files:
        print("no files")
        return 1
    nvrtc, failures = Nvrtc(libraries[0]), 0
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            results = []
            for architecture in ARCHITECTURES:
                options = [f"--gpu-architecture=sm_{architecture}", "-lineinfo", *(f"--include-path={path}" for path in includes)]
                failed, text = nvrtc.ptx(Path(file).read_bytes(), options)
                ok, text = (False, text.decode()) if failed else assemble(text, architecture, folder)
                failures += not ok
                results.append(f"sm_{architecture} {text if ok else 'FAILED: ' + text}")
            print(f"{Path(file).stem}: registers {', '.join(results)}")
    print(f"{len(files)} kernels, {len(ARCHITECTURES)} architectures, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
