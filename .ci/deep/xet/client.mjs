// The official JavaScript client as people use it, Xet and all: client.mjs ENDPOINT REPO uploads a file and reads it again.

import { randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.cwd() + "/");
const hub = await import(pathToFileURL(require.resolve("@huggingface/hub")).href);
const [hubUrl, repo] = process.argv.slice(2);
const accessToken = process.env.HF_TOKEN;

const data = randomBytes(1_000_003);
await hub.uploadFile({ repo, hubUrl, accessToken, file: { path: "extra/noise.bin", content: new Blob([data]) } });
const blob = await hub.downloadFile({ repo, hubUrl, accessToken, path: "extra/noise.bin", xet: true });
if (!data.equals(Buffer.from(await blob.arrayBuffer()))) throw new Error("what came back differs");
