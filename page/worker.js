// Runs the program once: what comes in are its arguments and environment, what goes out is what it prints. What it says meanwhile goes
// out at once. It is appended to
// wasm_exec.js of the Go toolchain, whose stand-in for files it completes.
onmessage = async ({ data: { module, args, env } }) => {
  const decoders = [new TextDecoder(), new TextDecoder()], printed = ['', ''];
  fs.writeSync = (fd, bytes) => {
    const text = decoders[fd - 1].decode(bytes, { stream: true });
    printed[fd - 1] += text;
    if (fd === 2) postMessage({ said: text });
    return bytes.length;
  };
  for (const name of ['open', 'stat', 'lstat', 'readdir', 'readlink', 'mkdir']) { // there are no files here
    fs[name] = (...given) => given.at(-1)(Object.assign(new Error('no such file'), { code: 'ENOENT' }));
  }
  let read = 0, code = 0;
  const ask = self.fetch.bind(self);
  self.fetch = async (...asked) => {
    const answer = await ask(...asked);
    postMessage({ read: read += +answer.headers.get('Content-Length') });
    return answer;
  };
  try {
    const go = new Go();
    Object.assign(go, { argv: ['df11-convert', ...args], env, exit: status => { code = status; } });
    await go.run(await WebAssembly.instantiate(module, go.importObject));
    postMessage({ code, stdout: printed[0], stderr: printed[1] });
  } catch (error) {
    postMessage({ failed: `${error}` }); // the page gets no event for a promise that breaks here
  }
};
