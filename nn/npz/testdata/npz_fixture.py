#!/usr/bin/python3
"""Writes numpy.npz and numpy_compressed.npz, which npz_test.go reads: run it in this directory.

Each array counts 0, 1, 2, … times a factor that its type holds exactly, so that the test can
derive what it must find. Written with numpy 1.24.2.
"""

import zipfile

import numpy as np

arrays = {
    "conv1.weight": np.arange(3 * 2 * 5 * 5, dtype="<f4").reshape(3, 2, 5, 5) * np.float32(0.25),
    "fc1.weight": np.arange(7 * 11, dtype="<f8").reshape(7, 11) * -0.5,
    "fc1.bias": np.arange(7, dtype="<f8") * 1024.125,
    "labels": np.arange(13, dtype="<i4") - 6,
    "steps": np.arange(3, dtype="<i8") * 2**40,
    "pixels": np.arange(2 * 3, dtype="u1").reshape(2, 3) * 51,
    "rate": np.array(0.0625),
    "empty": np.zeros((0, 4), dtype="<f4"),
}
np.savez("numpy.npz", **arrays)
np.savez_compressed("numpy_compressed.npz", **arrays)
np.savez("numpy_fortran.npz", w=np.asfortranarray(np.arange(6.0).reshape(2, 3)))
for name in ("numpy.npz", "numpy_compressed.npz", "numpy_fortran.npz"):
    with zipfile.ZipFile(name) as z:
        assert all(entry.date_time == (1980, 1, 1, 0, 0, 0) for entry in z.infolist())  # no clock in the files
