"""Serve an archive over HTTP from one process with several threads.

    python examples/scale_out/serve.py net.pt 8000
    curl -d '[[1, 2, 3, 4, 5, 6, 7, 8]]' http://localhost:8000

All threads call one program. Kernels and operators on many elements run without the GIL, so that threads compute at the
same time; calls on few elements take turns, and are collected into batches. Batches have sizes of a few powers of two,
for each of which the program is compiled before the first request.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch
from torch import Tensor

import rekindle

SIZES = (1, 2, 4, 8, 16, 32)
"""How many rows a call of the program may have."""


@dataclass
class Server:
    """Runs ``program`` on rows of ``width`` numbers that any thread submits."""

    program: Any
    width: int
    workers: int = 2
    waiting: queue.Queue[tuple[Tensor, Future[Tensor]]] = field(default_factory=queue.Queue)

    def start(self) -> None:
        """Compile for all sizes, and start the threads."""
        torch.set_num_threads(1)  # requests are what runs in parallel
        with torch.inference_mode():
            for size in SIZES:
                for _ in range(4):  # kernels are made in the first few calls
                    self.program(torch.zeros(size, self.width))
        for _ in range(self.workers):
            threading.Thread(target=self._work, daemon=True).start()

    def submit(self, row: Tensor) -> Future[Tensor]:
        """Return the future of the program's result for one row.

        Raises:
            ValueError: the row has another width. Alone: it would fail the batch.
        """
        if row.shape != (self.width,):
            raise ValueError(f"a row has {self.width} numbers")
        result: Future[Tensor] = Future()
        self.waiting.put((row, result))
        return result

    def _work(self) -> None:
        with torch.inference_mode():  # a mode belongs to a thread
            while True:
                self._run(self._batch())

    def _batch(self) -> list[tuple[Tensor, Future[Tensor]]]:
        """Wait for a row; take with it those that wait already."""
        batch = [self.waiting.get()]
        while len(batch) < SIZES[-1]:
            try:
                batch.append(self.waiting.get_nowait())
            except queue.Empty:
                break
        return batch

    def _run(self, batch: list[tuple[Tensor, Future[Tensor]]]) -> None:
        size = next(size for size in SIZES if size >= len(batch))
        rows = torch.zeros(size, self.width)
        try:
            for index, (row, _) in enumerate(batch):
                rows[index] = row
            results = self.program(rows)
        except Exception as error:  # each caller gets the error of the batch
            for _, future in batch:
                future.set_exception(error)
            return
        for index, (_, future) in enumerate(batch):
            future.set_result(results[index])


def handler(server: Server) -> type[BaseHTTPRequestHandler]:
    """The class of requests: a list of rows as JSON, answered with the list of results."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            try:
                rows = torch.tensor(
                    json.loads(self.rfile.read(int(self.headers["Content-Length"]))), dtype=torch.float32
                )
                answer = [future.result().tolist() for future in [server.submit(row) for row in rows]]
            except (ValueError, TypeError, RuntimeError) as error:
                self._reply(400, {"error": str(error)})
            else:
                self._reply(200, answer)

        def _reply(self, code: int, answer: object) -> None:
            body = json.dumps(answer).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def main(path: str, port: str) -> None:
    program = rekindle.load(path).eval()
    server = Server(program, width=next(iter(program.parameters())).shape[-1])
    server.start()
    http = ThreadingHTTPServer(("127.0.0.1", int(port)), handler(server))
    print(f"http://127.0.0.1:{http.server_port}", flush=True)
    http.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
