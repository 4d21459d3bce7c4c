import { HostError, host } from "./core.js";
import { Operation, operation, read } from "./handles.js";
import { parseResponse, requestName, requestText } from "./message.js";

export { Headers, Response, ResponseError, StatusError } from "./message.js";

export function fetch(url, init = {}) {
  const name = requestName(url, init);
  const handle = host.http(requestText(url, init));
  if (handle < 0) return Operation.reject(new HostError(name, handle));
  return operation(handle, () => {
    const response = parseResponse(read(name, handle), name);
    if (response.status === 0) response.check();
    return response;
  });
}
