import { answer, host } from "./core.js";
import { Operation, operation, read } from "./handles.js";
import { parseResponse, requestName, requestText } from "./message.js";

export { Headers, Response, ResponseError, StatusError } from "./message.js";

export function fetch(url, init = {}) {
  const name = requestName(url, init);
  let handle;
  try {
    handle = answer(name, host.http(requestText(url, init)));
  } catch (e) {
    return Operation.reject(e);
  }
  return operation(handle, () => {
    const response = parseResponse(read(name, handle), name);
    if (response.status === 0) response.check();
    return response;
  });
}
