package hubtest

import (
	"maps"
	"slices"
	"strings"
)

const hubTime = "2006-01-02T15:04:05.000Z"

func modelInfo(c *call) (any, error) {
	head, err := c.commit()
	if err != nil && c.cfg.EmptySHA {
		return map[string]any{"id": c.repo.name, "sha": "", "siblings": []any{}}, nil
	}
	if err != nil {
		return nil, err
	}
	info := c.info(head)
	info["siblings"] = c.siblings(head, isTrue(c.r.URL.Query().Get("blobs")) && !c.cfg.NoSizes)
	return info, nil
}

// datasetInfo says who may see a data set. Some have no namespace.
func datasetInfo(c *call) (any, error) {
	user, err := c.userOf(c.r)
	if err != nil {
		return nil, err
	}
	name := c.r.PathValue("dataset")
	owner, _, _ := strings.Cut(name, "/")
	set, ok := c.datasets[name]
	if !ok || set.Private && (user == nil || !user.owns(owner)) {
		return nil, errRepoNotFound(user == nil)
	}
	return map[string]any{"id": name, "private": set.Private, "gated": set.gate(), "disabled": false}, nil
}

// listModels lists the models that the caller may see, by a part of the name and by the relation to
// a base model that their cards state.
func listModels(c *call) (any, error) {
	q := c.r.URL.Query()
	base, filtered := strings.CutPrefix(q.Get("filter"), "base_model:quantized:")
	list := []any{}
	for _, name := range slices.Sorted(maps.Keys(c.repos)) {
		rp := c.repos[name]
		head := rp.resolve("main")
		if head == nil || !strings.Contains(strings.ToLower(name), strings.ToLower(q.Get("search"))) ||
			rp.opts.Private && (c.user == nil || !c.user.sees(rp)) {
			continue
		}
		card, _ := parseCard(head.Files["README.md"].content)
		if !filtered || card["base_model"] == base && card["base_model_relation"] == "quantized" {
			list = append(list, map[string]any{"id": name, "modelId": name, "private": rp.opts.Private})
		}
	}
	return list, nil
}

func (c *call) info(head *Commit) map[string]any {
	opts, name := c.repo.opts, c.repo.name
	card, _ := parseCard(head.Files["README.md"].content)
	info := map[string]any{
		"_id": blobID([]byte(name))[:24], "id": name, "modelId": name, "author": c.repo.namespace(),
		"sha": head.OID, "createdAt": c.repo.created.UTC().Format(hubTime),
		"lastModified": head.Date.UTC().Format(hubTime),
		"private":      opts.Private, "gated": opts.gate(), "disabled": false,
		"downloads": 0, "likes": 0, "tags": []string{},
	}
	for _, k := range []string{"pipeline_tag", "library_name"} {
		if v, ok := card[k].(string); ok {
			info[k] = v
		}
	}
	if opts.says != nil {
		opts.says(info)
	}
	return info
}

func (c *call) siblings(head *Commit, blobs bool) []map[string]any {
	out := []map[string]any{}
	for _, p := range slices.Sorted(maps.Keys(head.Files)) {
		e, f := c.described(p, head.Files[p]), map[string]any{"rfilename": p}
		if blobs {
			f["size"], f["blobId"] = e.Size, e.BlobID
			if e.isLFS() {
				f["lfs"] = map[string]any{"sha256": e.SHA256, "size": e.Size,
					"pointerSize": len(pointer(e.SHA256, e.Size))}
			}
		}
		out = append(out, f)
	}
	return out
}

func refs(c *call) (any, error) {
	branches := []map[string]any{}
	for _, ref := range slices.Sorted(maps.Keys(c.repo.refs)) {
		branches = append(branches, map[string]any{"name": strings.TrimPrefix(ref, "refs/heads/"),
			"ref": ref, "targetCommit": c.repo.refs[ref]})
	}
	return map[string]any{"branches": branches, "converts": []any{}, "tags": []any{}}, nil
}
