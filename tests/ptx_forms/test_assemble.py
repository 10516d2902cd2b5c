"""Builds side by side, and what ptxas leaves on a full disk. Needs ptxas."""

import os
import pathlib
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

from assemble import assemble, machine_code, tool

KERNEL = ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"


class Assemble(unittest.TestCase):
    def test_builds_of_the_same_text_share_a_file(self) -> None:
        if not pathlib.Path(tool("ptxas")).exists():
            self.assertNotIn("nvcc", os.environ.get("CUINSTR_REQUIRE", ""))
            self.skipTest("no ptxas in CUDA_HOME or .cuda")
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(16) as pool:
            builds = list(pool.map(lambda _: assemble(KERNEL, "sm_90", pathlib.Path(folder)), range(160)))
            self.assertEqual(len({str(build) for build in builds}), 1)
            self.assertEqual([file.name for file in pathlib.Path(folder).iterdir()], [builds[0]["cubin"]])

    def test_a_file_that_ptxas_did_not_finish_is_named(self) -> None:
        for image in (b"", b"\x7fELF", bytes(64)[:0x30]):
            with self.assertRaisesRegex(RuntimeError, f"^a.cubin: ptxas wrote {len(image)} bytes.*Is the disk full"):
                machine_code(image, "a.cubin")


if __name__ == "__main__":
    unittest.main()
