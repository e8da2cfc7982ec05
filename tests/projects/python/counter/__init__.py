"""How many words there are in a text, told by HTTP."""
import http.server


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        body = str(len(text.split())).encode()
        self.send_response(200 if self.path == "/words" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def server():
    return http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
