import threading
import unittest
import urllib.error
import urllib.request

import counter


class Counter(unittest.TestCase):
    def setUp(self):
        self.server = counter.server()
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def ask(self, path, text):
        url = "http://127.0.0.1:%d%s" % (self.server.server_port, path)
        with urllib.request.urlopen(url, data=text.encode(), timeout=20) as answer:
            return answer.read().decode()

    def test_words_are_counted(self):
        self.assertEqual(self.ask("/words", " a  stray   sheep "), "3")

    def test_other_paths_are_unknown(self):
        with self.assertRaises(urllib.error.HTTPError) as raised:
            self.ask("/letters", "x")
        raised.exception.close()
        self.assertEqual(raised.exception.code, 404)
