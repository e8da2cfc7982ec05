"""Runs the modules of tests one after the other, and writes a JUnit report of each when it is done."""
import os
import sys
import unittest
from xml.sax.saxutils import quoteattr


class Recorded(unittest.TextTestResult):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.run_tests = []

    def startTest(self, test):
        super().startTest(test)
        self.run_tests.append(test.id())


def write_report(name, result):
    bad = {test.id(): text for test, text in result.failures + result.errors}
    with open("reports/%s.xml" % name, "w") as file:
        file.write('<testsuite name="%s" tests="%d" failures="%d">\n' % (name, len(result.run_tests), len(bad)))
        for test in result.run_tests:
            failure = "<failure message=%s/>" % quoteattr(bad[test]) if test in bad else ""
            file.write("<testcase name=%s>%s</testcase>\n" % (quoteattr(test), failure))
        file.write("</testsuite>\n")


os.makedirs("reports", exist_ok=True)
good = True
for name in ["counter", "end"]:
    suite = unittest.defaultTestLoader.loadTestsFromName("tests.test_" + name)
    outcome = unittest.TextTestRunner(resultclass=Recorded).run(suite)
    write_report(name, outcome)
    good = good and outcome.wasSuccessful() and outcome.testsRun > 0
sys.exit(0 if good else 1)
