// Runs the official JavaScript client against a hub and checks what it sees.
//
// usage: node client.mjs ENDPOINT
// The hub serves org/tiny and takes uploads of 300 kB and more in parts. The
// package @huggingface/hub must be installed in a folder above the working one.

import { createHash, randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.cwd() + "/");
const hub = await import(pathToFileURL(require.resolve("@huggingface/hub")).href);
const hubUrl = process.argv[2];
const accessToken = "hf_test";
const repo = { type: "model", name: "tester/js-out" };

function check(ok, what) {
	if (!ok) {
		console.error("FAIL", what);
		process.exit(1);
	}
	console.log("ok  ", what);
}

const sha256 = (data) => createHash("sha256").update(data).digest("hex");

async function read(name, path, xet = false) {
	const blob = await hub.downloadFile({ repo: name, path, hubUrl, accessToken, xet });
	return blob && Buffer.from(await blob.arrayBuffer());
}

async function download() {
	const files = [];
	for await (const f of hub.listFiles({ repo: "org/tiny", recursive: true, hubUrl })) {
		files.push(f);
	}
	check(files.some((f) => f.path === "config.json"), "listFiles");
	const weights = files.find((f) => f.path.startsWith("model") && f.path.endsWith(".safetensors"));
	const info = await hub.fileDownloadInfo({ repo: "org/tiny", path: weights.path, hubUrl });
	check(info.size === weights.size, "fileDownloadInfo of a large file");
	const git = await hub.fileDownloadInfo({ repo: "org/tiny", path: "LICENSE", hubUrl });
	check(git.size === files.find((f) => f.path === "LICENSE").size, "fileDownloadInfo of a git file");
	check(sha256(await read("org/tiny", weights.path)) === weights.lfs.oid, "downloadFile: large");
	check(JSON.parse(await read("org/tiny", "config.json")).model_type === "llama", "downloadFile: resolve cache");
	check((await read("org/tiny", "no-such-file")) === null, "downloadFile: not found");
	check((await hub.modelInfo({ name: "org/tiny", hubUrl })).name === "org/tiny", "modelInfo");
}

async function upload() {
	await hub.createRepo({ repo, accessToken, hubUrl });
	const big = randomBytes(1_000_003);
	const commit = await hub.uploadFiles({
		repo,
		accessToken,
		hubUrl,
		useXet: false,
		commitTitle: "all files",
		files: [
			{ path: "model.safetensors", content: new Blob([big]) },
			{ path: "sub/small.safetensors", content: new Blob([randomBytes(999)]) },
			{ path: "config.json", content: new Blob(["{}\n"]) },
			{ path: "README.md", content: new Blob(["---\nlicense: mit\n---\n# Hi\n"]) },
		],
	});
	check(commit.commit.oid.length === 40, "uploadFiles with a multi-part file");
	check(sha256(await read(repo.name, "model.safetensors")) === sha256(big), "download of the uploaded file");
	await hub.uploadFile({ repo, accessToken, hubUrl, useXet: false, file: { path: "a.txt", content: new Blob(["a"]) } });
	await hub.deleteFile({ repo, path: "a.txt", accessToken, hubUrl });
	check((await read(repo.name, "a.txt")) === null, "uploadFile, deleteFile");
	check((await hub.whoAmI({ accessToken, hubUrl })).name === "tester", "whoAmI");
}

await download();
await upload();
