import mmap
import os
import signal
import unittest


class End(unittest.TestCase):
    def test_the_end_that_was_asked_for(self):
        end = os.environ.get("END", "pass")
        while end == "hang":
            signal.pause()
        taken = []
        while end == "memory":  # shared, which no rlimit holds
            taken.append(mmap.mmap(-1, 8 << 20))
            taken[-1].write(b"x" * (8 << 20))
        self.assertEqual(end, "pass")
