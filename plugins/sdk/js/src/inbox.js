import { Body, host } from "./core.js";
import { Stream } from "./handles.js";

export const inbox = () => new Stream("inbox", host.recv(), (bytes) => new Body(bytes), false);
