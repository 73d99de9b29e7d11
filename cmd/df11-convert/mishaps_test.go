package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// mishaps follow the rows of the table of hints, each with a step that its hint names.
var mishaps = []mishap{
	{cause: hint.DiskBudget, kind: pipeline.ErrDiskBudget, args: "org/model --push --disk 1kB", step: "raise --disk, or leave it out", then: "org/model --push"},
	{cause: hint.Conflict, kind: pipeline.ErrConflict, args: "org/model -o DIR/out", before: func(h *helped) { h.write("out/config.json", "{}") },
		step: "choose another target with -o", then: "org/model -o DIR/other"},
	{cause: hint.Conflict, kind: pipeline.ErrConflict, args: "org/model -o DIR/out", before: func(h *helped) { h.write("out/config.json", "{}") },
		step: "add --force", then: "org/model -o DIR/out --force"},
	{cause: hint.Retrained, kind: pipeline.ErrConflict, args: "DIR/tuned -o DIR/out", before: func(h *helped) {
		world.Must(h.T, smallModel(1).Write(filepath.Join(h.dir, "tuned")))
		h.run("DIR/tuned -o DIR/out")
		world.Must(h.T, smallModel(2).Write(filepath.Join(h.dir, "tuned")))
	}, step: "add --force", then: "DIR/tuned -o DIR/out --force"},
	{cause: hint.Edited, kind: pipeline.ErrConflict, args: "org/model -o DIR/out", before: func(h *helped) {
		h.run("org/model -o DIR/out")
		h.write("out/config.json", "{}")
	}, step: "undo it with --force", then: "org/model -o DIR/out --force"},
	{cause: hint.Stays, kind: pipeline.ErrConflict, args: "org/model -o DIR/out --force", before: func(h *helped) { h.write("out/x.safetensors", "x") },
		step: "move these files elsewhere", follow: func(h *helped) { world.Must(h.T, os.Remove(filepath.Join(h.dir, "out/x.safetensors"))) }},
	{cause: hint.SourceIsTarget, kind: pipeline.ErrSourceIsTarget, args: "org/model --push --repo-id org/model", step: "choose another target", then: "org/model --push --repo-id tester/other"},
	{cause: hint.Visibility, kind: pipeline.ErrVisibility, args: "org/secret --push --repo-id tester/open", before: func(h *helped) {
		h.hub.AddModel("org/secret", smallModel(1))
		h.hub.Configure("org/secret", hubtest.Private())
		h.hub.AddRepo("tester/open", nil)
	}, step: "choose another target with --repo-id", then: "org/secret --push --repo-id tester/closed"},
	{cause: hint.Visibility, kind: pipeline.ErrVisibility, args: "org/secret --push --repo-id tester/open", before: func(h *helped) {
		h.hub.AddModel("org/secret", smallModel(1))
		h.hub.Configure("org/secret", hubtest.Private())
		h.hub.AddRepo("tester/open", nil)
	}, step: "make it private in its settings", follow: func(h *helped) { h.hub.Configure("tester/open", hubtest.Private()) }},
	{cause: hint.NotPrivate, kind: pipeline.ErrVisibility, args: "org/model --push --private", before: func(h *helped) { h.hub.AddRepo("tester/model-DF11", nil) },
		step: "make it private in its settings", follow: func(h *helped) { h.hub.Configure("tester/model-DF11", hubtest.Private()) }},
	{cause: hint.NotPrivate, kind: pipeline.ErrVisibility, args: "org/model --push --private", before: func(h *helped) { h.hub.AddRepo("tester/model-DF11", nil) },
		step: "or choose another target with --repo-id", then: "org/model --push --private --repo-id tester/closed"},
	{cause: hint.Card, kind: pipeline.ErrCard, args: "DIR/m --push", before: func(h *helped) { h.model("m"); h.write("m/README.md", "---\nlicense: [mit\n---\n") },
		step: "name the license with --license", then: "DIR/m --push --license mit"},
	{cause: hint.Occupied, kind: pipeline.ErrOccupied, args: "decode DIR/out -o DIR/back", before: func(h *helped) { h.converted("out"); h.write("back/model-00001-of-00002.safetensors", "x") },
		step: "choose another folder with -o", then: "decode DIR/out -o DIR/other"},
	{cause: hint.Occupied, kind: pipeline.ErrOccupied, args: "decode DIR/out -o DIR/back", before: func(h *helped) { h.converted("out"); h.write("back/model-00001-of-00002.safetensors", "x") },
		step: "add --force", then: "decode DIR/out -o DIR/back --force"},
	{cause: hint.OwnInput, kind: pipeline.ErrOwnInput, args: "decode DIR/out -o DIR/out", before: func(h *helped) { h.converted("out") },
		step: "choose a folder outside it with -o", then: "decode DIR/out -o DIR/back"},
	{cause: hint.HeaderCut, kind: pipeline.ErrHeader, args: "plan DIR/m", before: func(h *helped) {
		path := h.shard("m")
		b := world.Read(h.T, path)
		world.Write(h.T, path, b[:len(b)-100])
	}, step: "fetch the file again", follow: func(h *helped) { h.model("m") }},
	{cause: hint.HeaderTail, kind: pipeline.ErrHeader, args: "plan DIR/m", before: func(h *helped) {
		path := h.shard("m")
		world.Write(h.T, path, append(world.Read(h.T, path), "tail"...))
	}, step: "save the model again", follow: func(h *helped) { h.model("m") }},
	{cause: hint.HeaderMetadata, kind: pipeline.ErrHeader, args: "plan DIR/m", before: func(h *helped) { h.header("m", "{", `{"__metadata__":{"step":1},`) },
		step: "strings as the values of its metadata", follow: func(h *helped) { h.model("m") }},
	{cause: hint.HeaderText, kind: pipeline.ErrHeader, args: "plan DIR/m", before: func(h *helped) { world.Write(h.T, h.shard("m"), []byte("Entry not found")) },
		step: "fetch the file from its own address", follow: func(h *helped) { h.model("m") }},
	{cause: hint.TwoSets, kind: pipeline.ErrNotConvertible, args: "plan DIR/m", before: func(h *helped) {
		b := world.Read(h.T, h.shard("m"))
		h.write("m/model.safetensors", string(b))
	}, step: "choose one with --file", then: "plan DIR/m --file model.safetensors.index.json"},
	{cause: hint.IndexMissing, kind: pipeline.ErrNotConvertible, args: "plan DIR/m", before: func(h *helped) {
		world.Must(h.T, os.Remove(filepath.Join(h.model("m"), "model-00002-of-00002.safetensors")))
	}, step: "complete the source", follow: func(h *helped) { h.model("m") }},
	{cause: hint.NoOriginal, kind: pipeline.ErrNoOriginal, args: "verify DIR/out", before: func(h *helped) { h.converted("out") },
		step: "--against", then: "verify DIR/out --against DIR/m"},
	{cause: hint.TokenRefused, kind: pipeline.ErrUnauthorized, args: "org/model --push", before: func(h *helped) { h.Setenv("HF_TOKEN", "hf_wrong") },
		step: "the token from HF_TOKEN is wrong or expired", follow: func(h *helped) { h.Setenv("HF_TOKEN", "hf_right") }},
	{cause: hint.Unauthorized, kind: pipeline.ErrUnauthorized, args: "org/model --push", before: func(h *helped) { h.Setenv("HF_TOKEN", "") },
		step: "set HF_TOKEN", follow: func(h *helped) { h.Setenv("HF_TOKEN", "hf_right") }},
	{cause: hint.Namespace, kind: pipeline.ErrForbidden, args: "org/model --push --repo-id acme/x", step: "choose your own namespace with --repo-id", then: "org/model --push --repo-id tester/x"},
	{cause: hint.AccountName, kind: pipeline.ErrUsage, args: "org/model --push --repo-id tester", step: "write the whole ID, such as tester/model-DF11", then: "org/model --push --repo-id tester/model-DF11"},
	{cause: hint.ReadToken, kind: pipeline.ErrForbidden, args: "org/model --push", before: func(h *helped) { h.Setenv("HF_TOKEN", "hf_read") },
		step: "make a token for writing", follow: func(h *helped) { h.Setenv("HF_TOKEN", "hf_right") }},
	{cause: hint.GatedToken, kind: pipeline.ErrGated, args: "plan acme/gated", before: func(h *helped) {
		h.hub.AddModel("acme/gated", smallModel(1))
		h.hub.Configure("acme/gated", hubtest.Gated("manual"))
	}, step: "request access at", follow: func(h *helped) { h.Setenv("HF_TOKEN", "hf_let_in") }},
	{cause: hint.Disabled, kind: pipeline.ErrDisabled, args: "plan org/off", before: func(h *helped) {
		h.hub.AddModel("org/off", smallModel(1))
		h.hub.Configure("org/off", hubtest.Disabled())
	}, step: "choose another source", then: "plan org/model"},
	{cause: hint.NoRepoToken, kind: pipeline.ErrNotFound, args: "plan org/modle", step: `check the spelling of "org/modle"`, then: "plan org/model"},
	{cause: hint.NoRevision, kind: pipeline.ErrNotFound, args: "plan org/model@v9", step: "check the revision after @", then: "plan org/model@main"},
	{cause: hint.Offline, kind: pipeline.ErrOffline, args: "plan org/model", before: func(h *helped) { h.Setenv("HF_HUB_OFFLINE", "1") },
		step: "unset HF_HUB_OFFLINE", follow: func(h *helped) { h.Setenv("HF_HUB_OFFLINE", "") }},
	{cause: hint.PartsMissing, kind: pipeline.ErrPartsMissing, args: "org/model --push --finish", before: func(h *helped) { h.run("org/model --push --shard 1/2") },
		step: "make those parts with --shard, then run --finish again", follow: func(h *helped) { h.run("org/model --push --shard 2/2") }},
	{cause: hint.NetworkTo, kind: pipeline.ErrHub, args: "plan org/model", before: func(h *helped) { h.Setenv("HF_ENDPOINT", "http://127.0.0.1:9") },
		step: "HF_ENDPOINT", follow: func(h *helped) { h.Setenv("HF_ENDPOINT", h.hub.URL) }},
	{cause: hint.MemoryBudget, kind: pipeline.ErrMemoryBudget, args: "plan DIR/m --memory 64MiB", before: func(h *helped) {
		h.model("m")
		h.write("m/model.safetensors.index.json", `{"metadata":{"x":"`+strings.Repeat("x", 20<<20)+`"},"weight_map":{}}`)
	}, step: "raise --memory, or leave it out", then: "plan DIR/m"},
	{cause: hint.InexactF32, kind: pipeline.ErrNotExactF32, args: "plan DIR/m --exact-f32", before: func(h *helped) {
		h.header("m", `"dtype":"BF16","shape":[256,32]`, `"dtype":"F32","shape":[256,16]`)
	}, step: "leave out --exact-f32", then: "plan DIR/m"},
	{cause: hint.OnlyF32, kind: pipeline.ErrNotExactF32, args: "DIR/m --exact-f32", before: func(h *helped) {
		llama(h.T, filepath.Join(h.dir, "m"), "F32", 1, "")
	}, step: "keep the model in F32", then: "plan org/model"},
	{cause: hint.NotOfPair, args: "decode DIR/out --against DIR/m -o DIR/back", before: func(h *helped) {
		h.converted("out")
		config := map[string]any{}
		world.Must(h.T, json.Unmarshal(world.Read(h.T, filepath.Join(h.dir, "out/config.json")), &config))
		config["dfloat11_config"].(map[string]any)["pattern_dict"] = map[string]any{}
		b, err := json.Marshal(config)
		world.Must(h.T, err)
		h.write("out/config.json", string(b))
	}, step: "df11-convert verify", then: "verify DIR/out --against DIR/m"},
	{cause: hint.NotOriginal, kind: pipeline.ErrNotOriginal, args: "DIR/m -o DIR/out --original org/other", before: func(h *helped) {
		h.model("m")
		h.hub.AddModel("org/other", smallModel(2))
	}, step: "leave --original out", then: "DIR/m -o DIR/out"},
	{cause: hint.Quota, kind: pipeline.ErrQuota, args: "DIR/m --push", limits: map[string]int64{"private storage": 10}, before: func(h *helped) { h.model("m") },
		step: "choose another target with --repo-id", then: "DIR/m --push --repo-id org/m --public"},
	{cause: hint.TooMany, kind: pipeline.ErrHubLimit, args: "org/deep --push", limits: map[string]int64{"files in a folder": 14},
		before: func(h *helped) {
			h.hub.AddModel("org/deep", hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 9}))
		}, step: "choose another layout with --layout", then: "org/deep --push --layout transformers-single"},
	{cause: hint.HubCard, kind: pipeline.ErrCard, args: "org/model --push", before: func(h *helped) {
		h.hub.Inject(hubtest.Fault{Method: "POST", Path: "/api/validate-yaml", Times: 1, Action: hubtest.Error(400, "", "Invalid metadata in README.md.\n- x")})
	}, step: "correct the value that it names", follow: func(*helped) {}},
	{cause: hint.NotDF11, kind: pipeline.ErrNotDF11, args: "verify DIR/m", before: func(h *helped) { h.model("m") }, step: "", then: "plan DIR/m"},
	{cause: hint.InsideDF11, kind: pipeline.ErrNotDF11, args: "verify DIR/m", before: func(h *helped) { h.model("m"); h.converted("m/in") },
		step: "/m/in", then: "verify DIR/m/in"},
	{cause: hint.NearPath, kind: pipeline.ErrUsage, args: "plan DIR/my-model/config.json", before: func(h *helped) { h.model("my-modle") },
		step: "my-modle/config.json, which", then: "plan DIR/my-modle"},
	{cause: hint.NearPath, kind: pipeline.ErrNotFound, args: "plan out/ckp", before: func(h *helped) { h.model("m"); world.Must(h.T, os.CopyFS("out/ckpt", os.DirFS(h.dir+"/m"))) },
		step: "did you mean out/ckpt, which", then: "plan out/ckpt"},
	{cause: hint.NearPath, kind: pipeline.ErrNotFound, args: "verify out/ckp-DF11", before: func(h *helped) {
		h.converted("made")
		world.Must(h.T, os.CopyFS("out/ckpt-DF11", os.DirFS(h.dir+"/made")))
	}, step: "did you mean out/ckpt-DF11, which", then: "inspect out/ckpt-DF11"},
	{cause: hint.NotFolder, kind: pipeline.ErrUsage, args: "plan DIR/none/model.safetensors", step: "check", then: "plan org/model"},

	// folders and targets
	{cause: hint.FolderLocked, args: "DIR/m -o DIR/out", before: func(h *helped) {
		h.model("m")
		world.Got(disk.OpenFolder(disk.Output, filepath.Join(h.dir, "out"), 0o700))(h.T)
	}, step: "choose another folder with -o", then: "DIR/m -o DIR/other"},
	{cause: hint.FolderUnsafe, args: "DIR/m -o DIR/out", before: func(h *helped) {
		h.model("m")
		h.write("elsewhere/x", "")
		h.write("out/config.md", "")
		world.Must(h.T, os.Symlink(filepath.Join(h.dir, "elsewhere"), filepath.Join(h.dir, "out", ".df11-convert")))
	}, then: "DIR/m -o DIR/mine"},
	{cause: hint.FolderShared, args: "DIR/m -o DIR/out", before: func(h *helped) {
		h.model("m")
		world.Must(h.T, os.Mkdir(filepath.Join(h.dir, "out"), 0o700))
		world.Must(h.T, os.Chmod(filepath.Join(h.dir, "out"), 0o777))
	}, step: "chmod go-w ", follow: func(h *helped) { world.Must(h.T, os.Chmod(filepath.Join(h.dir, "out"), 0o755)) }},
	{cause: hint.FolderAbove, args: "DIR/m -o DIR/lab/out", before: func(h *helped) {
		h.model("m")
		world.Must(h.T, os.MkdirAll(filepath.Join(h.dir, "lab", "out"), 0o700))
		world.Must(h.T, os.Chmod(filepath.Join(h.dir, "lab"), 0o777))
	}, step: "chmod +t ", follow: func(h *helped) { world.Must(h.T, os.Chmod(filepath.Join(h.dir, "lab"), 0o777|os.ModeSticky)) }},
	{cause: hint.FolderIsFile, args: "DIR/m -o DIR/file/out", before: func(h *helped) { h.model("m"); h.write("file", "") }, then: "DIR/m -o DIR/out"},
	{cause: hint.FolderInUse, args: "DIR/m -o .", before: func(h *helped) { h.model("m"); h.write("x", ""); h.Chdir(h.dir) }, then: "DIR/m -o m-DF11"},
	{cause: hint.Path, kind: pipeline.ErrUsage, args: "batch DIR/list.yaml", follow: func(h *helped) { h.write("list.yaml", "models: []") }},
	{cause: hint.Path, kind: pipeline.ErrUsage, args: "plan DIR/m --pattern-dict DIR/dict.json", before: func(h *helped) { h.model("m") }, then: "plan DIR/m"},
	{cause: hint.NotFile, kind: pipeline.ErrFile, args: "plan DIR/m --pattern-dict DIR/m", before: func(h *helped) { h.model("m") }, then: "plan DIR/m"},
	{cause: hint.PathTooLarge, kind: pipeline.ErrFile, args: "batch DIR/list.yaml", before: func(h *helped) { h.write("list.yaml", strings.Repeat(" ", maxList+1)) },
		follow: func(h *helped) { h.write("list.yaml", "models: []") }},
	{cause: hint.License, args: "org/model --push --license free", then: "org/model --push --license mit"},
	{cause: hint.OriginalIsSource, args: "org/model -o DIR/out --original org/model", then: "org/model -o DIR/out"},
	{cause: hint.RepoName, args: "DIR/m..m --push", before: func(h *helped) { h.model("m..m") }, then: "DIR/m..m --push --repo-id tester/m"},
	{cause: hint.PublisherRepo, args: "org/model --push --repo-id acme/other", before: trusted, follow: func(h *helped) { h.Setenv("HF_OIDC_RESOURCE", "acme/other") }},
	{cause: hint.NewerManifest, kind: pipeline.ErrNewerTarget, args: "verify DIR/out", before: func(h *helped) {
		h.run("org/model -o DIR/out")
		h.edit("out/df11-manifest.json", `"schema_version": 1`, `"schema_version": 2`)
	}, step: "update df11-convert", follow: func(h *helped) {
		h.edit("out/df11-manifest.json", `"schema_version": 2`, `"schema_version": 1`)
	}},
	{cause: hint.Newer, kind: pipeline.ErrNewerTarget, args: "org/model -o DIR/out", before: func(h *helped) {
		h.run("org/model -o DIR/out")
		h.edit("out/df11-manifest.json", fmt.Sprintf(`"rules": %d`, plan.Rules), `"rules": 99`)
		h.hub.Push("org/model", "main", map[string][]byte{"LICENSE": []byte("mit")})
	}, step: "add --force", then: "org/model -o DIR/out --force"},

	// the source's files
	{cause: hint.Link, args: "plan DIR/m", before: func(h *helped) {
		path := h.shard("m")
		world.Must(h.T, os.Rename(path, path+".x"))
		world.Must(h.T, os.Symlink("gone", path))
	}, follow: func(h *helped) {
		path := filepath.Join(h.dir, "m", smallShard)
		world.Must(h.T, os.Rename(path+".x", path))
	}},
	{cause: hint.LinkOutside, args: "DIR/m -o DIR/out", before: func(h *helped) {
		h.llama("m", "BF16", "")
		h.write("x", "{}")
		world.Must(h.T, os.Symlink("../x", filepath.Join(h.dir, "m/generation_config.json")))
	}, step: "replace the link with the file", follow: func(h *helped) {
		world.Must(h.T, os.Rename(filepath.Join(h.dir, "x"), filepath.Join(h.dir, "m/generation_config.json")))
	}},
	{cause: hint.LinkIncluded, args: "plan DIR/m --include *", before: func(h *helped) {
		h.llama("m", "BF16", "")
		h.write("x", "{}")
		world.Must(h.T, os.Symlink("../x", filepath.Join(h.dir, "m/b[1].txt")))
	}, step: `--include '!/b\[1].txt' at the end`, then: `plan DIR/m --include * --include !/b\[1].txt`},
	{cause: hint.HardLink, args: "DIR/m -o DIR/out", before: func(h *helped) {
		h.llama("m", "BF16", "")
		h.write("m/.env", "{}")
		world.Must(h.T, os.Link(filepath.Join(h.dir, "m/.env"), filepath.Join(h.dir, "m/vocab.json")))
	}, step: "publish it with --include vocab.json", then: "DIR/m -o DIR/out --include vocab.json"},
	{cause: hint.Kept, args: "DIR/m --push --repo-id tester/kept", before: func(h *helped) {
		h.model("m")
		h.write("m/.gitignore", "config.json\n")
	}, step: "publish it with --include config.json", then: "DIR/m --push --repo-id tester/kept --include config.json"},
	{cause: hint.Token, kind: pipeline.ErrNotConvertible, args: "DIR/m --push --public --repo-id tester/told -q", before: func(h *helped) {
		h.model("m")
		h.write("m/generation_config.json", `{"note": "hf_`+strings.Repeat("abcdef", 6)[:34]+`"}`)
	}, step: "if it's no secret, add --include generation_config.json", then: "DIR/m --push --public --repo-id tester/told -q --include generation_config.json"},
	{cause: hint.Token, kind: pipeline.ErrNotConvertible, args: "DIR/m --push --public --repo-id tester/told", before: func(h *helped) {
		h.header("m", `"__metadata__":{`, `"__metadata__":{"cmd":"--token hf_`+strings.Repeat("abcdef", 6)[:34]+`",`)
	}, step: "publish it with --private", then: "DIR/m --push --private --repo-id tester/told"},
	{cause: hint.Pointer, args: "plan DIR/m", before: func(h *helped) {
		world.Write(h.T, h.shard("m"), []byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"))
	}, follow: func(h *helped) { h.model("m") }},
	{cause: hint.ModelAlone, args: "plan org/odd", before: func(h *helped) {
		files := llamaFiles("BF16", 0, "")
		files[`notes\a.txt`] = []byte("x")
		h.hub.AddRepo("org/odd", files)
	}, follow: func(h *helped) { h.llama("FOLDER", "BF16", "") }, then: "plan DIR/FOLDER"},
	{cause: hint.FileAndFlag, args: "plan DIR/one.safetensors --file x.safetensors", before: func(h *helped) { h.write("one.safetensors", string(comfyFlux(""))) }, then: "plan DIR/one.safetensors"},
	{cause: hint.IncludeRepo, args: "org/model -o DIR/out --include x", then: "org/model -o DIR/out"},
	{cause: hint.IncludeNone, args: "DIR/m -o DIR/out --include *.txt", before: func(h *helped) { h.model("m") }, then: "plan DIR/m"},
	{cause: hint.IncludeNever, args: "DIR/m -o DIR/out --include pytorch_model.bin", before: func(h *helped) { h.model("m"); h.write("m/pytorch_model.bin", "x") }, then: "DIR/m -o DIR/out"},

	// addresses
	{cause: hint.EmptyRevision, args: "plan org/model@", then: "plan org/model"},
	{cause: hint.NotHubPage, args: "plan https://example.com/org/model", then: "plan org/model"},
	{cause: hint.NotModel, args: "plan https://huggingface.co/datasets/org/model", then: "plan org/model"},
	{cause: hint.AddressSecret, args: "plan https://me:secret@huggingface.co/org/model", then: "plan org/model"},
	{cause: hint.NoModelNamed, args: "plan https://huggingface.co/org", then: "plan https://huggingface.co/org/model"},

	// headers
	{cause: hint.HeaderOverlap, kind: pipeline.ErrHeader, args: "plan DIR/m/model.safetensors", before: func(h *helped) {
		h.write("m/model.safetensors", raw(`{"a.weight":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]},"b.weight":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}`, 2))
		h.write("m/config.json", "{}")
	}, follow: func(h *helped) {
		h.write("m/model.safetensors", raw(`{"a.weight":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]},"b.weight":{"dtype":"BF16","shape":[1],"data_offsets":[2,4]}}`, 4))
	}},
	{cause: hint.HeaderLength, kind: pipeline.ErrHeader, args: "plan DIR/m", before: func(h *helped) {
		world.Write(h.T, h.shard("m"), []byte("PK\x03\x04\xff\xff\xff\xff\xff\xff\xff\xffabcdefgh"))
	},
		follow: func(h *helped) { h.model("m") }},
	{cause: hint.HeaderLimit, kind: pipeline.ErrHeader, args: "plan DIR/m", before: func(h *helped) {
		world.Write(h.T, h.shard("m"), []byte(raw(`{"`+strings.Repeat("x", 100_000)+`":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}`, 2)))
	}, follow: func(h *helped) { h.model("m") }},
	{cause: hint.HeaderAsWritten, kind: pipeline.ErrHeader, args: "plan DIR/m", before: func(h *helped) { h.header("m", `"dtype":"BF16"`, `"dtype":""`) },
		follow: func(h *helped) { h.model("m") }},

	// models that can't be converted as asked
	{cause: hint.Entry, args: "plan DIR/gpt2", before: func(h *helped) {
		h.write("gpt2/config.json", `{"model_type":"gpt2","architectures":["GPT2LMHeadModel"]}`)
		h.write("gpt2/model.safetensors", string(llamaFiles("BF16", 0, "")["model.safetensors"]))
	}, then: "plan org/model"},
	{cause: hint.IsDF11, args: "plan DIR/out", before: func(h *helped) { h.converted("out") }, step: "/out; get the BF16 files back with: df11-convert decode ", then: "decode DIR/out -o DIR/back"},
	{cause: hint.PublishDF11, args: "DIR/out --push", before: func(h *helped) { h.converted("out") }, then: "DIR/m -o DIR/out --push"},
	{cause: hint.PublishFile, args: "DIR/one --push", before: func(h *helped) {
		h.write("flux.safetensors", string(comfyFlux("")))
		h.run("DIR/flux.safetensors -o DIR/one")
	}, then: "DIR/flux.safetensors -o DIR/one --push"},
	{cause: hint.OtherFamily, args: "DIR/out --layout diffusers-single -o DIR/x", before: func(h *helped) { h.converted("out") }, step: "decode", then: "decode DIR/out -o DIR/back"},
	{cause: hint.NotArranged, args: "plan DIR/p --layout single", before: func(h *helped) {
		for name, b := range fluxFiles() {
			h.write("p/"+name, string(b))
		}
		h.write("flux.safetensors", string(comfyFlux("")))
	}, then: "plan DIR/flux.safetensors"},
	{cause: hint.Download, args: "plan tester/model-DF11 --layout transformers-single", before: func(h *helped) {
		h.run("org/model --push")
		h.run("org/model -o DIR/FOLDER") // the same files
		h.hub.Configure("org/model", hubtest.Disabled())
	}, then: "plan DIR/FOLDER --layout transformers-single"},
	{cause: hint.WrongDF11, args: "DIR/out --layout transformers-single -o DIR/x", before: func(h *helped) { h.converted("out"); h.flip("out/lm_head.safetensors") }, then: "verify DIR/out --against DIR/m"},
	{cause: hint.FirstFormat, args: "plan DIR/old", before: func(h *helped) {
		h.write("old/config.json", `{"dfloat11_version":"0.1.0"}`)
		h.write("old/model.pkl", "x")
	}, then: "plan org/model"},
	{cause: hint.Quantized, args: "plan DIR/m", before: func(h *helped) {
		h.llama("m", "BF16", `,"quantization_config":{"quant_method":"fp8"}`)
		h.tensors("m", func(c *world.Checkpoint) { c.Add("model.layers.0.mlp.up_proj.weight_scale", "F32", 0, 1) })
	}, then: "plan org/model"},
	{cause: hint.IsF32, args: "plan DIR/m", before: func(h *helped) { h.llama("m", "F32", "") }, step: "add --exact-f32", then: "plan DIR/m --exact-f32"},
	{cause: hint.IsF16, args: "plan DIR/m", before: func(h *helped) { h.llama("m", "F16", "") }, then: "plan org/model"},
	{cause: hint.IsF64, args: "plan DIR/m", before: func(h *helped) {
		h.llama("m", "BF16", "")
		h.tensors("m", func(c *world.Checkpoint) {
			for i := range c.Tensors {
				c.Tensors[i].DType, c.Tensors[i].Shape[0] = "F64", c.Tensors[i].Shape[0]/4
			}
		})
	}, then: "plan org/model"},
	{cause: hint.Adapter, args: "plan DIR/m", before: func(h *helped) {
		h.write("m/adapter_config.json", "{}")
		h.write("m/adapter_model.safetensors", string(comfyFlux("")))
	},
		follow: func(h *helped) {
			h.model("m")
			world.Must(h.T, os.Remove(filepath.Join(h.dir, "m/adapter_config.json")))
		}},
	{cause: hint.Pickle, args: "plan DIR/m", before: func(h *helped) { h.write("m/config.json", "{}"); h.write("m/pytorch_model.bin", "x") }, follow: func(h *helped) { h.model("m") }},
	{cause: hint.NamedOriginal, args: "plan DIR/m", before: func(h *helped) {
		h.write("m/model.gguf", "x")
		h.write("m/README.md", "---\nbase_model: org/model\n---\n")
	}, then: "plan org/model"},
	{cause: hint.NamedBase, args: "plan org/lora", before: func(h *helped) {
		h.hub.AddRepo("org/lora", map[string][]byte{"adapter_config.json": []byte("{}"), "adapter_model.safetensors": comfyFlux(""),
			"README.md": []byte("---\nbase_model: org/model\nbase_model_relation: adapter\n---\n")})
	}, step: "names org/model", follow: func(h *helped) { h.hub.AddRepo("org/merged", llamaFiles("BF16", 0, "")) }, then: "plan org/merged"},
	{cause: hint.HubCut, kind: pipeline.ErrHeader, args: "plan org/cut", before: func(h *helped) {
		files := llamaFiles("BF16", 0, "")
		files["model.safetensors"] = files["model.safetensors"][:10000]
		h.hub.AddRepo("org/cut", files)
	}, follow: func(h *helped) { h.hub.Push("org/cut", "main", llamaFiles("BF16", 0, "")) }},
	{cause: hint.HubPointer, args: "plan org/pointer", before: func(h *helped) {
		files := llamaFiles("BF16", 0, "")
		files["model.safetensors"] = []byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
		h.hub.AddRepo("org/pointer", files)
	}, follow: func(h *helped) { h.hub.Push("org/pointer", "main", llamaFiles("BF16", 0, "")) }},
	{cause: hint.CheckpointFile, args: "plan DIR/flux.ckpt", before: func(h *helped) {
		h.write("flux.ckpt", "x")
		h.write("flux.safetensors", string(comfyFlux("")))
	}, then: "plan DIR/flux.safetensors"},
	{cause: hint.VAE, args: "plan DIR/ae.safetensors", before: func(h *helped) {
		c := world.NewCheckpoint(1)
		c.Add("encoder.conv_in.weight", "BF16", 0, 32, 3, 3, 3)
		c.Add("decoder.conv_out.weight", "BF16", 0, 3, 32, 3, 3)
		h.write("ae.safetensors", string(c.File()))
		h.write("flux.safetensors", string(comfyFlux("")))
	}, then: "plan DIR/flux.safetensors"},
	{cause: hint.GGUF, args: "plan DIR/m", before: func(h *helped) { h.write("m/model.gguf", "x") }, then: "plan org/model"},
	{cause: hint.Incomplete, args: "plan DIR/m", before: func(h *helped) {
		h.llama("m", "BF16", "")
		h.tensors("m", func(c *world.Checkpoint) {
			c.Tensors = slices.DeleteFunc(c.Tensors, func(x world.Tensor) bool { return strings.Contains(x.Name, ".0.mlp.up_proj") })
		})
	}, step: "fetch the source again", follow: func(h *helped) { h.llama("m", "BF16", "") }},
	{cause: hint.Unread, args: "plan DIR/m", before: func(h *helped) { h.model("m"); h.write("m/config.json", "{") }, follow: func(h *helped) { h.model("m") }},
	{cause: hint.Rename, args: "plan DIR/m/aux.safetensors", before: func(h *helped) { h.write("m/aux.safetensors", string(comfyFlux(""))) },
		follow: func(h *helped) {
			world.Must(h.T, os.Rename(filepath.Join(h.dir, "m/aux.safetensors"), filepath.Join(h.dir, "m/flux.safetensors")))
		}, then: "plan DIR/m/flux.safetensors"},
	{cause: hint.NameClash, args: "plan DIR/m --pattern-dict DIR/dict.json", before: func(h *helped) {
		h.llama("m", "BF16", "")
		h.tensors("m", func(c *world.Checkpoint) { c.Block("", "a.b_c", "a_b.c") })
		h.write("dict.json", `{"a.b.c": []}`)
	}, follow: dict(`{"a\\.b_c": []}`), then: "plan DIR/m --pattern-dict DIR/dict.json"},
	{cause: hint.ShardMissing, args: "plan DIR/m", before: func(h *helped) {
		world.Must(h.T, os.Remove(h.shard("m")))
		world.Must(h.T, os.Remove(filepath.Join(h.dir, "m/model.safetensors.index.json")))
	}, follow: func(h *helped) { h.model("m") }},
	{cause: hint.IndexMissing, args: "plan DIR/m", before: func(h *helped) {
		h.model("m")
		h.edit("m/model.safetensors.index.json", smallShard, "model-00001-of-00009.safetensors")
	}, step: "if the index is stale, remove it", follow: func(h *helped) { world.Must(h.T, os.Remove(filepath.Join(h.dir, "m/model.safetensors.index.json"))) }},
	{cause: hint.IndexOrSingle, args: "plan DIR/m", before: func(h *helped) {
		for name, b := range fluxFiles() {
			h.write("m/"+name, string(b))
		}
		h.write("m/transformer/diffusion_pytorch_model.safetensors.index.json", `{"weight_map":{"x":"diffusion_pytorch_model-00001-of-00002.safetensors"}}`)
	}, step: "choose the single file", then: "plan DIR/m --file transformer/diffusion_pytorch_model.safetensors"},
	{cause: hint.IndexStale, args: "plan DIR/m", before: func(h *helped) {
		h.model("m")
		h.edit("m/model.safetensors.index.json", `"lm_head.weight": "model-00002`, `"lm_head.weight": "model-00001`)
	}, follow: func(h *helped) { h.model("m") }},
	{cause: hint.StaleTensor, args: "plan DIR/m", before: func(h *helped) {
		h.model("m")
		c := world.NewCheckpoint(1)
		c.Add("lm_head.weight", "BF16", 0, 256, 32)
		h.write("m/more.safetensors", string(c.File()))
		h.edit("m/model.safetensors.index.json", `"weight_map": {`, `"weight_map": {"more": "more.safetensors",`)
	}, follow: func(h *helped) { h.model("m") }},
	{cause: hint.StatedMissing, args: "plan DIR/m", before: func(h *helped) {
		h.write("m/config.json", `{"architectures":["LlamaForCausalLM"],"transformers_weights":"gone.safetensors"}`)
		h.write("m/weights.safetensors", string(llamaFiles("BF16", 0, "")["model.safetensors"]))
	}, step: "name the weights with --file", then: "plan DIR/m --file weights.safetensors"},
	{cause: hint.TwoShardSets, args: "plan DIR/m", before: func(h *helped) {
		h.model("m")
		world.Must(h.T, os.Remove(filepath.Join(h.dir, "m/model.safetensors.index.json")))
		h.write("m/model-00001-of-00003.safetensors", string(comfyFlux("")))
	}, follow: func(h *helped) {
		world.Must(h.T, os.Remove(filepath.Join(h.dir, "m/model-00001-of-00003.safetensors")))
	}},
	{cause: hint.ManySingles, args: "plan DIR/m", before: func(h *helped) {
		h.write("m/a.safetensors", string(comfyFlux("")))
		h.write("m/b.safetensors", string(comfyFlux("")))
	}, then: "plan DIR/m --file a.safetensors"},
	{cause: hint.UnusualName, args: "plan DIR/m", before: func(h *helped) {
		h.llama("m", "BF16", "")
		world.Must(h.T, os.Rename(filepath.Join(h.dir, "m/model.safetensors"), filepath.Join(h.dir, "m/weights.safetensors")))
	}, step: "rename the weight file to model.safetensors", follow: func(h *helped) {
		world.Must(h.T, os.Rename(filepath.Join(h.dir, "m/weights.safetensors"), filepath.Join(h.dir, "m/model.safetensors")))
	}},
	{cause: hint.UnusualName, args: "plan DIR/m", before: func(h *helped) {
		h.write("m/config.json", "{}")
		h.write("m/flux.safetensors", string(comfyFlux("")))
	}, step: "name it with --file if it's a file for ComfyUI", then: "plan DIR/m --file flux.safetensors"},
	{cause: hint.OtherEnd, args: "plan DIR/flux.sft", before: func(h *helped) { h.write("flux.sft", string(comfyFlux(""))) },
		step: "rename it to flux.safetensors", follow: func(h *helped) {
			world.Must(h.T, os.Rename(filepath.Join(h.dir, "flux.sft"), filepath.Join(h.dir, "flux.safetensors")))
		}, then: "plan DIR/flux.safetensors"},
	{cause: hint.OtherEnd, args: "plan DIR/m", before: func(h *helped) { h.write("m/A.SafeTensors", string(comfyFlux(""))) },
		step: "rename it to A.safetensors", follow: func(h *helped) { h.write("m/A.safetensors", string(comfyFlux(""))) }},
	{cause: hint.Unfinished, args: "plan tester/model-DF11", before: func(h *helped) { h.run("org/model --push --shard 1/2") },
		step: "run the same conversion again", then: "org/model --push"},
	{cause: hint.EmptyRepo, args: "verify tester/model-DF11", before: func(h *helped) { h.hub.AddRepo("tester/model-DF11", nil) },
		step: "run the conversion to it again", follow: func(h *helped) { h.run("org/model --push") }},
	{cause: hint.EmptyRepo, args: "plan tester/model-DF11", before: func(h *helped) { h.hub.AddRepo("tester/model-DF11", nil) },
		step: "choose another repo", then: "plan org/model"},
	{cause: hint.GoneOriginal, kind: pipeline.ErrNotFound, args: "verify DIR/out", before: func(h *helped) {
		h.run("org/model -o DIR/out")
		h.hub.RemoveRepo("org/model")
	}, step: "name the original with --against org/name or PATH", follow: func(h *helped) { h.model("m") }, then: "verify DIR/out --against DIR/m"},
	{cause: hint.NoWeights, args: "plan DIR/m", before: func(h *helped) { h.write("m/x.txt", "x") }, follow: func(h *helped) { h.model("m") }},
	{cause: hint.NoSuchFile, kind: pipeline.ErrUsage, args: "plan DIR/m --file x.safetensors", before: func(h *helped) { h.llama("m", "BF16", "") }, then: "plan DIR/m --file model.safetensors"},
	{cause: hint.PartOfModel, args: "plan DIR/m --file " + smallShard, before: func(h *helped) { h.model("m") }, then: "plan DIR/m"},
	{cause: hint.OtherModel, args: "plan DIR/m --file sub/model.safetensors", before: func(h *helped) { h.model("m"); h.llama("m/sub", "BF16", "") }, then: "plan DIR/m/sub"},
	{cause: hint.Subfolder, args: "plan DIR/m", before: func(h *helped) {
		h.llama("m/checkpoint-500", "BF16", "")
		h.write("m/README.md", "x")
		h.write("m/lora/adapter_model.safetensors", string(comfyFlux("")))
	}, step: "/m/checkpoint-500;", then: "plan DIR/m/checkpoint-500"},
	{cause: hint.Subfolder, args: "plan DIR/m", before: func(h *helped) {
		h.model("m/checkpoint-500")
		h.model("m/checkpoint-1000")
		h.write("m/README.md", "x")
	}, then: "plan DIR/m/checkpoint-1000"},
	{cause: hint.NoPipeline, kind: pipeline.ErrUsage, args: "plan org/model --component unet", then: "plan org/model"},
	{cause: hint.NoComponent, kind: pipeline.ErrNotConvertible, args: "plan DIR/m", before: func(h *helped) {
		for name, b := range fluxFiles() {
			h.write("m/"+strings.Replace(name, "transformer/", "denoiser/", 1), string(b))
		}
	}, then: "plan DIR/m --component denoiser"},
	{cause: hint.TiedDiffer, kind: pipeline.ErrAliasesDiffer, args: "DIR/m -o DIR/out", before: func(h *helped) {
		h.llama("m", "BF16", "")
		h.edit("m/config.json", "false", "true")
	}, follow: func(h *helped) { h.edit("m/config.json", "true", "false") }},
	{cause: hint.TiedDiffer, kind: pipeline.ErrAliasesDiffer, args: "DIR/m --push --repo-id tester/tied", before: func(h *helped) {
		h.llama("m", "BF16", "")
		h.edit("m/config.json", "false", "true")
	}, follow: func(h *helped) { h.edit("m/config.json", "true", "false") }},
	{cause: hint.ListTiedDiffer, kind: pipeline.ErrAliasesDiffer, args: "batch DIR/list.yaml --push", before: func(h *helped) {
		tieFalsely(h.hub, "org/model", "")
		h.write("list.yaml", "models: [org/model]")
	}, step: "add expect: not_convertible", follow: func(h *helped) {
		h.write("list.yaml", "models: [{source: org/model, expect: not_convertible}]")
	}},
	{cause: hint.OtherTied, args: "plan DIR/m", before: func(h *helped) {
		h.llama("m", "BF16", "")
		h.edit("m/config.json", "false", "true")
		h.tensors("m", func(c *world.Checkpoint) {
			c.Tensors = slices.DeleteFunc(c.Tensors, func(x world.Tensor) bool { return x.Name == "lm_head.weight" })
			c.Add("lm_head.weight", "BF16", 0, 32, 32)
		})
	}, follow: func(h *helped) { h.edit("m/config.json", "true", "false") }},

	// what to compress, and for whom
	{cause: hint.Unknown, args: "plan DIR/m", before: func(h *helped) {
		c := world.NewCheckpoint(1)
		c.Add("head.weight", "BF16", 0, 32, 32)
		h.write("m/model.safetensors", string(c.File()))
		h.write("m/config.json", `{"architectures":["ToyModel"],"model_type":"toy"}`)
		h.write("dict.json", `{"head": []}`)
	}, then: "plan DIR/m --pattern-dict DIR/dict.json"},
	{cause: hint.DictForm, kind: pipeline.ErrUsage, args: "plan DIR/m --pattern-dict DIR/dict.json", before: dict(`["lm_head"]`), follow: dict(`{"lm_head": []}`)},
	{cause: hint.DictForm, kind: pipeline.ErrNotConvertible, args: "plan DIR/m --pattern-dict DIR/dict.json", before: dict(`{}`), follow: dict(`{"lm_head": []}`)},
	{cause: hint.Disjoint, args: "plan DIR/m --pattern-dict DIR/dict.json", before: dict(`{"lm_head": [], "lm_.*": []}`), follow: dict(`{"lm_head": []}`)},
	{cause: hint.Nested, args: "plan DIR/m --pattern-dict DIR/dict.json", before: dict(`{"model\\.layers\\.\\d+": ["mlp.up_proj"], "model\\.layers\\.\\d+\\.mlp\\.down_proj": []}`), follow: dict(`{"model\\.layers\\.\\d+": ["mlp.up_proj"]}`)},
	{cause: hint.LoaderLoop, args: "plan DIR/m --pattern-dict DIR/dict.json", before: dict(`{"model\\.layers\\.\\d+": ["mlp.up_proj"], "mlp": []}`), follow: dict(`{"lm_head": []}`)},
	{cause: hint.Dimensions, args: "plan DIR/m --pattern-dict DIR/dict.json", before: dict(`{"model\\.layers\\.\\d+\\.input_layernorm": []}`), follow: dict(`{"lm_head": []}`)},
	{cause: hint.ReaderRefuses, args: "plan DIR/m --for dfloat11", before: func(h *helped) { h.llama("m", "BF16", ""); h.edit("m/config.json", "{", "\ufeff{") }, then: "plan DIR/m"},
	{cause: hint.Unfilled, args: "plan DIR/flux.safetensors --pattern-dict DIR/dict.json", before: func(h *helped) {
		h.write("flux.safetensors", string(comfyFlux("")))
		h.write("dict.json", `{"double_blocks\\.\\d+": ["txt_mod.lin", "txt_attn.qkv", "txt_attn.proj", "txt_mlp.0", "txt_mlp.2", "img_mod.lin", "img_attn.qkv", "img_attn.proj", "img_mlp.0", "img_mlp.2"]}`)
	}, step: "accept them with --unfilled", then: "plan DIR/flux.safetensors --pattern-dict DIR/dict.json --unfilled"},
	{cause: hint.ModulePath, args: "plan DIR/m --pattern-dict DIR/dict.json", before: func(h *helped) {
		h.llama("m", "BF16", "")
		h.tensors("m", func(c *world.Checkpoint) { c.Add("model.a b.weight", "BF16", 0, 32, 32) })
		h.write("dict.json", `{"model\\.a b": []}`)
	}, follow: dict(`{"lm_head": []}`)},
	{cause: hint.RemainderName, args: "plan DIR/m --pattern-dict DIR/dict.json", before: func(h *helped) {
		h.llama("m", "BF16", "")
		h.tensors("m", func(c *world.Checkpoint) { c.Add("remainder.x.weight", "BF16", 0, 32, 32) })
		h.write("dict.json", `{"remainder": ["x"]}`)
	}, follow: dict(`{"remainder\\.x": []}`)},
	{cause: hint.TiedHead, args: "plan DIR/m --pattern-dict DIR/dict.json", before: func(h *helped) {
		dict(`{"model\\.embed_tokens": []}`)(h)
		h.edit("m/config.json", "false", "true")
	}, follow: dict(`{"model\\.layers\\.\\d+": ["mlp.up_proj"]}`)},
	{cause: hint.WhichLayout, kind: pipeline.ErrNotConvertible, args: "DIR/dl/model.safetensors -o DIR/out", before: func(h *helped) { h.write("dl/model.safetensors", string(comfyFlux(""))) },
		then: "DIR/dl/model.safetensors -o DIR/out --layout single"},
	{cause: hint.WhichLayout, kind: pipeline.ErrNotConvertible, args: "plan DIR/dl", before: func(h *helped) {
		h.write("dl/diffusion_pytorch_model.safetensors", string(comfyFlux("model.diffusion_model.")))
	},
		step: "--layout diffusers", then: "plan DIR/dl --layout diffusers"},
	{cause: hint.Layout, args: "plan org/model --layout shards", then: "plan org/model --layout transformers"},
	{cause: hint.Like, kind: pipeline.ErrUsage, args: "plan org/model --like lama-untied", then: "plan org/model --like llama-untied"},
	{cause: hint.LikeUnknown, kind: pipeline.ErrUsage, args: "plan org/model --like zzzzzzzz", then: "plan org/model --like llama-untied"},
	{cause: hint.LikeLayout, args: "plan org/model --like flux-dev-diffusers", then: "plan org/model --like llama-untied"},

	// DF11 models and their originals
	{cause: hint.OldDF11, args: "verify DIR/old", before: func(h *helped) {
		h.write("old/config.json", `{"dfloat11_version":"0.1.0"}`)
		h.write("old/model.pkl", "x")
	}, then: "org/model -o DIR/new"},
	{cause: hint.FolderHasOne, args: "verify DIR/out/flux-DF11.safetensors", before: func(h *helped) {
		h.hub.AddRepo("org/flux", map[string][]byte{"flux.safetensors": comfyFlux("")})
		h.run("org/flux -o DIR/out")
	}, step: "verify its folder", then: "verify DIR/out"},
	{cause: hint.WholeFolder, kind: pipeline.ErrUsage, args: "verify DIR/out/lm_head.safetensors --against DIR/m", before: func(h *helped) { h.converted("out") },
		step: "name its folder instead: ", then: "verify DIR/out --against DIR/m"},
	{cause: hint.Unfinished, args: "verify tester/model-DF11", before: func(h *helped) { h.run("org/model --push --shard 1/2") },
		step: "run the same conversion again", follow: func(h *helped) { h.run("org/model --push") }},
	{cause: hint.MaybeOther, kind: pipeline.ErrMismatch, args: "verify DIR/out --against org/two", before: func(h *helped) {
		h.converted("out")
		h.hub.AddModel("org/two", smallModel(2))
		world.Must(h.T, os.Remove(filepath.Join(h.dir, "out/df11-manifest.json")))
	}, then: "verify DIR/out --against DIR/m"},
	{cause: hint.OtherOriginal, args: "verify DIR/out --against DIR/out2", before: func(h *helped) { h.converted("out"); h.converted("out2") },
		step: "with --against", then: "verify DIR/out --against DIR/m"},
	{cause: hint.OwnOriginal, args: "verify DIR/out --against DIR/out", before: func(h *helped) { h.converted("out") }, step: "a folder elsewhere", then: "verify DIR/out --against DIR/m"},
	{cause: hint.OtherOriginal, kind: pipeline.ErrOtherOriginal, args: "verify DIR/out --against org/two", before: func(h *helped) { h.converted("out"); h.hub.AddModel("org/two", smallModel(2)) },
		then: "verify DIR/out --against DIR/m"},
	{cause: hint.Locate, kind: pipeline.ErrMismatch, args: "verify DIR/out --against org/model --level proof", before: func(h *helped) {
		h.run("org/model -o DIR/out")
		world.Must(h.T, os.Remove(filepath.Join(h.dir, "out/df11-manifest.json")))
		h.flip("out/model_layers_0.safetensors")
	}, then: "verify DIR/out --against org/model --level full"},
	{cause: hint.Rotten, args: "verify DIR/out --against DIR/m", before: func(h *helped) { h.converted("out"); h.flip("out/lm_head.safetensors") },
		follow: func(h *helped) { world.Must(h.T, os.RemoveAll(filepath.Join(h.dir, "out"))); h.converted("out") }},
	{cause: hint.ByManifest, kind: pipeline.ErrInvalid, args: "decode DIR/out -o DIR/back",
		before: func(h *helped) { h.converted("out"); h.edit("out/df11-manifest.json", `"size": `, `"size": 1`) },
		then:   "decode DIR/out -o DIR/back --against DIR/m"},
	{cause: hint.OtherFamily, args: "plan DIR/out --layout diffusers-single", before: func(h *helped) { h.converted("out") }, then: "decode DIR/out -o DIR/back"},
	{cause: hint.WrongDF11, args: "DIR/out --layout transformers-single -o DIR/one", before: func(h *helped) { h.converted("out"); h.flip("out/lm_head.safetensors") },
		then: "verify DIR/out --against DIR/m"},
	{cause: hint.Download, args: "plan org/flux --layout single", before: func(h *helped) { h.hub.AddRepo("org/flux", denoiserFiles()) },
		follow: func(h *helped) { h.files("FOLDER", denoiserFiles()) }, then: "DIR/FOLDER --layout single -o DIR/comfy"},
	{cause: hint.NotArranged, args: "plan DIR/out --layout single", before: func(h *helped) {
		h.files("flux", fluxFiles()) // which has a tensor that ComfyUI's files don't have
		h.run("DIR/flux -o DIR/out")
	}, follow: func(h *helped) { h.write("flux1.safetensors", string(comfyFlux(""))) }, then: "plan DIR/flux1.safetensors --layout single"},
	{cause: hint.NoGPU, args: "verify DIR/out --against DIR/m --gpu require", before: func(h *helped) { h.converted("out"); h.Setenv("CUDA_VISIBLE_DEVICES", "") }, then: "verify DIR/out --against DIR/m"},
	{cause: hint.NoKernel, args: "kernel --install DIR/env", before: func(h *helped) { h.write("env/x", "") }, follow: func(h *helped) { h.write("env/decode.ptx", "") }},
	{cause: hint.Kernels, args: "kernel --install DIR/env", before: func(h *helped) { h.write("env/a/decode.ptx", "x"); h.write("env/b/decode.ptx", "x") }, then: "kernel --install DIR/env/a"},
	{cause: hint.KernelFile, args: "kernel DIR/decode.ptx", before: func(h *helped) { h.write("decode.ptx", ".visible .entry decode(") }, step: "replace it with --install", then: "kernel --install DIR/decode.ptx"},
	{cause: hint.KernelGone, args: "kernel --uninstall DIR/decode.ptx", before: func(h *helped) {
		h.write("decode.ptx", ".visible .entry decode(")
		h.run("kernel --install DIR/decode.ptx")
		h.write("decode.ptx", "y")
	}, follow: func(h *helped) {
		world.Must(h.T, errors.Join(os.RemoveAll(filepath.Join(h.dir, "decode.ptx.official")), os.Remove(filepath.Join(h.dir, "decode.ptx"))))
	}},

	// the Hub and the way to it
	{cause: hint.Gated, step: "unset DF11_PUSH_ENDPOINT", args: "plan org/closed", before: func(h *helped) { h.closed("org/closed"); h.Setenv("DF11_PUSH_ENDPOINT", "http://localhost:9") },
		follow: func(h *helped) { h.Setenv("DF11_PUSH_ENDPOINT", "") }},
	{cause: hint.NotHubAt, args: "plan org/model", before: func(h *helped) { h.answers("application/json", 200, "null") }, step: "HF_ENDPOINT, which is http"},
	{cause: hint.WebPageAt, args: "plan org/model", before: func(h *helped) { h.answers("text/html", 200, "<html>") }, step: "HF_ENDPOINT, which is http"},
	{cause: hint.Scheme, args: "plan org/model", before: func(h *helped) { h.Setenv("HF_ENDPOINT", strings.Replace(h.hub.URL, "http:", "https:", 1)) },
		follow: func(h *helped) { h.Setenv("HF_ENDPOINT", h.hub.URL) }},
	{cause: hint.Endpoint, args: "plan org/model", before: func(h *helped) { h.Setenv("HF_ENDPOINT", "ftp://hub") }, follow: func(h *helped) { h.Setenv("HF_ENDPOINT", h.hub.URL) }},
	{cause: hint.NoScheme, args: "plan org/model", before: func(h *helped) { h.Setenv("HF_ENDPOINT", strings.TrimPrefix(h.hub.URL, "http://")) },
		follow: func(h *helped) { h.Setenv("HF_ENDPOINT", h.hub.URL) }},
	{cause: hint.BadToken, args: "plan org/model", before: func(h *helped) { h.Setenv("HF_TOKEN", "hf_a b") }, step: "set HF_TOKEN to", follow: func(h *helped) { h.Setenv("HF_TOKEN", "hf_right") }},
	{cause: hint.BadToken, args: "plan org/model", before: func(h *helped) { h.Setenv("HF_TOKEN", `"hf_right"`) }, step: "or quotes", follow: func(h *helped) { h.Setenv("HF_TOKEN", "hf_right") }},
	{cause: hint.BadTokenFile, args: "plan org/model", before: func(h *helped) { h.Setenv("HF_TOKEN", ""); h.Setenv("HF_HOME", h.dir); h.write("token", "hf a b") },
		follow: func(h *helped) { h.write("token", "hf_right") }},
	{cause: hint.ProxyLogin, args: "plan org/model", before: func(h *helped) { h.answers("", 407, "") }},
	{cause: hint.Report, args: "plan org/model", before: func(h *helped) { h.answers("", 422, "") }},
	{cause: hint.NoRepo, args: "plan org/modle", before: func(h *helped) { h.Setenv("HF_TOKEN", "") }, then: "plan org/model"},
	{cause: hint.NoRoute, args: "org/model --push", before: func(h *helped) {
		h.hub.Inject(hubtest.Fault{Method: "POST", Path: "/api/repos/create", Action: hubtest.Status(405, nil, "")})
	}},
	{cause: hint.Gated, args: "plan org/closed", before: func(h *helped) { h.closed("org/closed"); h.Setenv("HF_TOKEN", "") }, follow: func(h *helped) {
		h.Setenv("HF_TOKEN", "hf_right")
		h.hub.Configure("org/closed", hubtest.Gated(""))
	}},
	{cause: hint.ForbiddenToken, args: "org/model --push", before: func(h *helped) {
		h.hub.Inject(hubtest.Fault{Method: "POST", Path: "/api/repos/create", Action: hubtest.Error(403, "", "no")})
	}},
	{cause: hint.Legal, args: "plan org/model", before: func(h *helped) { h.answers("", 451, "") }},

	// the command line and lists
	{cause: hint.Similar, args: "verfy org/model", then: "verify org/model"},
	{cause: hint.SimilarFlag, args: "org/model --psuh", then: "org/model --push"},
	{cause: hint.OtherFlag, args: "org/model --against x", then: "verify org/model --against org/model"},
	{cause: hint.EntryFlag, args: "batch DIR/list.yaml --file x", before: func(h *helped) { h.write("list.yaml", "models: []") }, then: "batch DIR/list.yaml"},
	{cause: hint.Help, args: "plan org/model --workers x", follow: func(h *helped) { h.run("plan --help") }, then: "plan org/model --workers 2"},
	{cause: hint.Commands, args: "modle", follow: func(h *helped) { h.run("--help") }, then: "plan org/model"},
	{cause: hint.CardUnit, args: "plan org/model --vram 24", then: "plan org/model --vram 24GB"},
	{cause: hint.CardMemory, args: "plan org/model --vram 3060", then: "plan org/model --vram 12GB"},
	{cause: hint.NeedsCard, args: "plan org/model --context 32k", then: "plan org/model --context 32k --vram 24GB"},
	{cause: hint.Task, args: "org/model --push --shard auto/2", follow: func(h *helped) { h.Setenv("SLURM_ARRAY_TASK_ID", "0") }},
	{cause: hint.ListForm, args: "status DIR/list.yaml", before: func(h *helped) { h.write("list.yaml", "model: org/model") },
		follow: func(h *helped) {
			h.write("list.yaml", "models: [org/name, {source: org/other, repo-id: you/other-DF11}]")
		}},
	// in lists
	{cause: hint.ListEdited, kind: pipeline.ErrConflict, args: "batch DIR/list.yaml --push", before: func(h *helped) {
		h.write("list.yaml", "models: [org/model]")
		h.run("batch DIR/list.yaml --push")
		h.hub.Push("tester/model-DF11", "main", map[string][]byte{"generation_config.json": []byte("{}")})
	}, step: "put the model into a list of its own", then: "batch DIR/list.yaml --push --force"},
	{cause: hint.ListConflict, args: "batch DIR/list.yaml --push", before: func(h *helped) {
		h.hub.AddRepo("tester/model-DF11", map[string][]byte{"config.json": []byte("{}")})
		h.write("list.yaml", "models: [org/model]")
	}, step: "write another repo-id", follow: func(h *helped) { h.write("list.yaml", "models: [{source: org/model, repo-id: tester/x}]") }},
	{cause: hint.ListConflict, args: "batch DIR/list.yaml --push", before: func(h *helped) {
		h.hub.AddRepo("tester/model-DF11", map[string][]byte{"config.json": []byte("{}")})
		h.write("list.yaml", "models: [org/model]")
	}, step: "list of its own: df11-convert batch", then: "batch DIR/list.yaml --push --force"},
	{cause: hint.ListStays, kind: pipeline.ErrConflict, args: "batch DIR/list.yaml --push", before: func(h *helped) {
		h.hub.AddRepo("tester/model-DF11", map[string][]byte{"my_adapter.safetensors": []byte("x")})
		h.write("list.yaml", "models: [org/model]")
	}, step: "delete these files", follow: func(h *helped) {
		h.hub.Push("tester/model-DF11", "main", map[string][]byte{"my_adapter.safetensors": nil})
	}},
	{cause: hint.ListTarget, kind: pipeline.ErrSourceIsTarget, args: "batch DIR/list.yaml --push", before: func(h *helped) {
		h.write("list.yaml", "models: [{source: org/model, repo-id: Org/model}]")
	}, follow: func(h *helped) { h.write("list.yaml", "models: [{source: org/model, repo-id: org/x}]") }},
	{cause: hint.ListNamespace, kind: pipeline.ErrForbidden, args: "batch DIR/list.yaml --push", before: func(h *helped) {
		h.write("list.yaml", "models: [{source: org/model, repo-id: acme/x}]")
	}, follow: func(h *helped) { h.write("list.yaml", "models: [{source: org/model, repo-id: tester/x}]") }},
	{cause: hint.ListQuota, kind: pipeline.ErrQuota, args: "batch DIR/list.yaml --push", limits: map[string]int64{"private storage": 10}, before: func(h *helped) {
		h.write("list.yaml", "models: [{source: org/model, private: true}]")
	}, follow: func(h *helped) { h.write("list.yaml", "models: [{source: org/model, repo-id: org/x, private: false}]") }},
	{cause: hint.ListVisibility, kind: pipeline.ErrVisibility, args: "batch DIR/list.yaml --push", before: func(h *helped) {
		h.hub.AddRepo("tester/model-DF11", nil)
		h.write("list.yaml", "models: [{source: org/model, private: true}]")
	}, step: "or write private: false", follow: func(h *helped) { h.write("list.yaml", "models: [{source: org/model, private: false}]") }},
	{cause: hint.ListCard, kind: pipeline.ErrCard, args: "batch DIR/list.yaml --push", before: func(h *helped) {
		h.hub.Push("org/model", "main", map[string][]byte{"README.md": []byte("---\nlicense: [mit\n---\n")})
		h.write("list.yaml", "models: [org/model]")
	}, step: "write license: ID", follow: func(h *helped) { h.write("list.yaml", "models: [{source: org/model, license: mit}]") }},
	{cause: hint.ListIndexOrSingle, args: "batch DIR/list.yaml --push", before: func(h *helped) {
		files := fluxFiles()
		files["transformer/diffusion_pytorch_model.safetensors.index.json"] = []byte(`{"weight_map":{"x":"diffusion_pytorch_model-00001-of-00002.safetensors"}}`)
		h.listed(files)
	}, step: "write file: transformer/diffusion_pytorch_model.safetensors into", follow: func(h *helped) {
		h.write("list.yaml", "models: [{source: org/odd, file: transformer/diffusion_pytorch_model.safetensors}]")
	}},
	{cause: hint.ListStatedMissing, args: "batch DIR/list.yaml --push", before: func(h *helped) {
		h.listed(map[string][]byte{"config.json": []byte(`{"architectures":["LlamaForCausalLM"],"transformers_weights":"gone.safetensors"}`),
			"weights.safetensors": llamaFiles("BF16", 0, "")["model.safetensors"]})
	}, step: "name the weights as file", follow: func(h *helped) { h.write("list.yaml", "models: [{source: org/odd, file: weights.safetensors}]") }},
	{cause: hint.ListTwoSets, args: "batch DIR/list.yaml --push", before: func(h *helped) {
		h.hub.Push("org/model", "main", map[string][]byte{"model.safetensors": world.Read(h.T, h.shard("m"))})
		h.write("list.yaml", "models: [org/model]")
	}, follow: func(h *helped) {
		h.write("list.yaml", "models: [{source: org/model, file: model.safetensors.index.json}]")
	}},
	{cause: hint.ListManySingles, args: "batch DIR/list.yaml --push", before: func(h *helped) {
		h.listed(map[string][]byte{"a.safetensors": comfyFlux(""), "b.safetensors": comfyFlux("")})
	}, follow: func(h *helped) { h.write("list.yaml", "models: [{source: org/odd, file: a.safetensors}]") }},
	{cause: hint.ListUnusualName, args: "batch DIR/list.yaml --push", before: func(h *helped) {
		h.listed(map[string][]byte{"config.json": []byte("{}"), "flux.safetensors": comfyFlux("")})
	}, step: "name it as file", follow: func(h *helped) { h.write("list.yaml", "models: [{source: org/odd, file: flux.safetensors}]") }},
	{cause: hint.ListNoPipeline, args: "batch DIR/list.yaml --push", before: func(h *helped) {
		h.write("list.yaml", "models: [{source: org/model, component: unet}]")
	}, follow: func(h *helped) { h.write("list.yaml", "models: [org/model]") }},
	{cause: hint.ListNoComponent, args: "batch DIR/list.yaml --push", before: func(h *helped) {
		files := map[string][]byte{}
		for name, b := range fluxFiles() {
			files[strings.Replace(name, "transformer/", "denoiser/", 1)] = b
		}
		h.listed(files)
	}, follow: func(h *helped) { h.write("list.yaml", "models: [{source: org/odd, component: denoiser}]") }},
	{cause: hint.NoPush, args: "batch DIR/list.yaml", before: func(h *helped) {
		h.write("list.yaml", "models: [{source: org/model, private: true}]")
	}, step: "add --push, or remove private", then: "batch DIR/list.yaml --push"},
	{cause: hint.Twice, args: "status DIR/list.yaml", before: func(h *helped) { h.write("list.yaml", "models: [org/model, org/model]") },
		follow: func(h *helped) { h.write("list.yaml", "models: [org/model]") }},
	{cause: hint.EndpointUser, args: "plan org/model", before: func(h *helped) {
		h.Setenv("HF_ENDPOINT", strings.Replace(h.hub.URL, "://", "://user:secret@", 1))
	}, step: "take the user, the password", follow: func(h *helped) { h.Setenv("HF_ENDPOINT", h.hub.URL) }},
	{cause: hint.Contradicts, args: "batch DIR/list.yaml --push --private", before: func(h *helped) {
		h.write("list.yaml", "models: [{source: org/model, repo-id: tester/open, private: false}]")
	}, step: "leave --private out", then: "batch DIR/list.yaml --push"},
	{cause: hint.SameTarget, args: "status DIR/list.yaml", before: func(h *helped) {
		h.write("list.yaml", "models: [org/name, {source: org/other, repo-id: org/name-DF11}, {source: org/name, repo-id: org/name-DF11}]")
	},
		follow: func(h *helped) {
			h.write("list.yaml", "models: [{source: org/other, repo-id: org/other-DF11}, {source: org/name, repo-id: org/name-DF11}]")
		}},
	{cause: hint.Unexpected, args: "batch DIR/list.yaml --push", before: func(h *helped) { h.write("list.yaml", "models: [{source: org/model, expect: not_convertible}]") },
		follow: func(h *helped) { h.write("list.yaml", "models: [org/model]") }},
	{cause: hint.OtherTools["token"], args: "org/model --push --token hf_right", before: func(h *helped) { h.Setenv("HF_TOKEN", "") }, follow: func(h *helped) { h.Setenv("HF_TOKEN", "hf_right") }, then: "org/model --push"},
	{cause: hint.OtherTools["login"], args: "login", then: "plan org/model"}, // hf is another program
	{cause: hint.OtherTools["dry-run"], args: "org/model --dry-run", then: "plan org/model"},
	{cause: hint.OtherTools["version"], args: "version", then: "--version"},
	{cause: hint.OtherTools["output-dir"], args: "org/model --output-dir DIR/out", then: "org/model -o DIR/out"},
	{cause: hint.OtherTools["local-dir"], args: "decode DIR/out --local-dir DIR/back", before: func(h *helped) { h.converted("out") }, then: "decode DIR/out -o DIR/back"},
	{cause: hint.OtherTools["cache-dir"], args: "org/model --push --cache-dir DIR/c", then: "org/model --push --work-dir DIR/c"},
	{cause: hint.OtherTools["upload"], args: "org/model --upload", then: "org/model --push"},
	{cause: hint.OtherTools["upload-repo"], args: "org/model --upload-repo tester/x", then: "org/model --push --repo-id tester/x"},
	{cause: hint.OtherTools["model"], args: "plan --model org/model", then: "plan org/model"},
	{cause: hint.OtherTools["overwrite"], args: "org/model -o DIR/out --overwrite", then: "org/model -o DIR/out --force"},
	{cause: hint.OtherTools["base-model"], args: "DIR/m -o DIR/out --base-model org/model", before: func(h *helped) { h.model("m") }, then: "DIR/m -o DIR/out --original org/model"},
	{cause: hint.OtherTools["device"], args: "verify DIR/out --against DIR/m --device cpu", before: func(h *helped) { h.converted("out") }, then: "verify DIR/out --against DIR/m --gpu off"},
	{cause: hint.OtherTools["threads"], args: "org/model -o DIR/out --threads 2", then: "org/model -o DIR/out --workers 2"},
}

// elsewhere are the rows of the table that need a full disk, a race, or another machine, with the
// test that has the error.
var elsewhere = map[string]string{
	"DiskFull": "pipeline/hints_test.go", "DiskFolder": "pipeline/hints_test.go",
	"MemoryLimit": "pipeline/hints_test.go", "Folder": "pipeline/hints_test.go",
	"FolderReadOnly": "pipeline/hints_test.go", "FolderForbidden": "pipeline/hints_test.go",
	"Taken": "pipeline/hints_test.go", "Lost": "pipeline/hints_test.go", "Witness": "pipeline/hints_test.go",
	"LargeFile": "pipeline/hints_test.go", "ManyFiles": "pipeline/hints_test.go",
	"SourceChanged": "pipeline/hints_test.go", "SourceCorrupt": "pipeline/hints_test.go",
	"Unaccounted": "pipeline/hints_test.go", "NoGain": "internal/convert/unitform_test.go",
	"ShorterNames": "internal/catalog/paths_test.go",
	"TooManyUnits": "internal/plan/refuse_test.go", "TooLarge": "internal/plan/refuse_test.go",
	"FirstRow": "internal/plan/parameters_test.go", "NoParameters": "internal/plan/parameters_test.go",
	"ListTaken": "cmd/df11-convert/hints_test.go", "ListWitness": "cmd/df11-convert/hints_test.go",
	"ListLost": "cmd/df11-convert/hints_test.go", "ListDiskFolder": "cmd/df11-convert/hints_test.go",
	"PathForbidden": "pipeline/hints_test.go", "FileSize": "pipeline/hints_test.go", "OpenFiles": "pipeline/hints_test.go",
	"LeftOut": "pipeline/hints_test.go", "ArrangedHere": "pipeline/hints_test.go",
	"Network": "hub/hint_test.go", "NetworkProxy": "hub/hint_test.go", "BadProxy": "hub/network_test.go", "NotHub": "hub/hint_test.go",
	"WebPage": "hub/hint_test.go", "AnyScheme": "hub/hint_test.go", "Certificate": "hub/hint_test.go",
	"CertificateTime": "hub/hint_test.go",
	"Login":           "hub/hint_test.go", "TwoHubs": "cmd/df11-convert/publisher_test.go", "Costly": "internal/catalog/match_test.go", "Again": "hub/hint_test.go", "AgainAt": "cmd/df11-convert/twohubs_test.go", "Firewall": "hub/outage_test.go",
	"Shown": "internal/convert/turnsprivate_test.go", "RequestSize": "hub/hint_test.go", "NoMain": "hub/hint_test.go",
	"TokenExpired": "hub/tokenfile_test.go", "Forbidden": "hub/hint_test.go", "Publisher": "hub/publisher_test.go",
	"Corrupt": "hub/hint_test.go", "BranchMoved": "pipeline/hints_test.go", "StaleLinks": "hub/hint_test.go", "NoETag": "hub/upload_test.go",
}
