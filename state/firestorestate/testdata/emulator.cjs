// Starts emulators of Firestore in one process. Each line on the standard input asks
// for another one, whose port is written to the standard output. They end with the
// input.
"use strict";
const readline = require("node:readline");
const load = require("node:module").createRequire(process.argv[2] + "/");
const { FirestoreServer } = load("@firestore-emulator/server");
const { ServerCredentials } = load("@grpc/grpc-js");

readline.createInterface({ input: process.stdin }).on("line", () => {
  const emulator = new FirestoreServer();
  emulator.state.emitter.setMaxListeners(0); // it has three for each that listens
  // Its own start listens on all addresses, and needs to be told a port.
  emulator.server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (err, port) => {
    if (err) throw err;
    process.stdout.write(port + "\n");
  });
}).on("close", () => process.exit(0));
