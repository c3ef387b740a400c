"""The loop of a worker: a command, its work, a reply."""


def report(error, at):
    text = f"{type(error).__name__}: {error}"
    return {"kind": "raised", "message": text, "traceback": traceback.format_exc(), "env": at}


def main():
    # Ctrl-C ends the parent, which may still need the environments to finish its step.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    worker, count = None, 0
    send(b"brasa-gym\n")
    while True:
        command, count = read(1), count + 1
        number_of_reply = struct.pack("<I", count & 0xFFFFFFFF)
        done = b"d" + number_of_reply
        try:
            if command == b"s":
                worker.step()
                send(done)
            elif command == b"":
                quit_worker()
            elif command == b"r":
                worker.reset()
                send(done)
            elif command == b"o":
                worker.begin(struct.unpack("<Q", receive_body())[0])
                send(done)
            elif command == b"c":
                config = json.loads(receive_body())
                # For errors before there is a worker.
                worker = None
                worker = create(config)
                send_body(b"h" + number_of_reply, json.dumps(worker.describe(), allow_nan=False).encode())
            elif command == b"a":
                worker.attach(json.loads(receive_body()))
                send(done)
            elif command == b"v":
                send_body(b"v" + number_of_reply, worker.save())
            elif command == b"p":
                send_body(b"p" + number_of_reply, worker.picture())
            elif command == b"l":
                worker.load(receive_body())
                send(done)
            else:
                raise RuntimeError(f"unknown command {command}")
        except Exception as error:
            at = worker.first_env + worker.at if worker is not None else None
            told = {**error.report, "env": at} if isinstance(error, Refused) else report(error, at)
            send_body(b"e" + number_of_reply, json.dumps(told).encode())


main()
