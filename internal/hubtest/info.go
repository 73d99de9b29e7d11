package hubtest

import (
	"encoding/json"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/safetensors"
)

const hubTime = "2006-01-02T15:04:05.000Z"

func modelInfo(c *call) (any, error) {
	head, err := c.commit()
	if err != nil {
		return nil, err
	}
	q := c.r.URL.Query()
	info := c.info(head)
	info["siblings"] = siblings(head, isTrue(q.Get("blobs")))
	props := q["expand"]
	if len(props) == 0 {
		return info, nil
	}
	if q.Has("blobs") || q.Has("securityStatus") {
		return nil, fail(http.StatusBadRequest, "expand cannot be combined with blobs or securityStatus")
	}
	some := map[string]any{"_id": info["_id"], "id": info["id"]}
	for _, p := range props {
		if v, ok := info[p]; ok {
			some[p] = v
		}
	}
	return some, nil
}

func (c *call) info(head *Commit) map[string]any {
	opts, name := c.repo.opts, c.repo.name
	var gated any = false
	if opts.Gated != "" {
		gated = opts.Gated
	}
	var used int64
	for _, f := range head.Files {
		used += f.Size
	}
	card, _ := parseCard(head.Files["README.md"].content)
	info := map[string]any{
		"_id": blobID([]byte(name))[:24], "id": name, "modelId": name, "author": c.repo.namespace(),
		"sha": head.OID, "createdAt": c.repo.created.UTC().Format(hubTime), "lastModified": head.Date.UTC().Format(hubTime),
		"private": opts.Private, "gated": gated, "disabled": opts.Disabled,
		"downloads": 0, "likes": 0, "tags": cardTags(card), "usedStorage": used, "spaces": []string{},
	}
	if card != nil {
		info["cardData"] = card
	}
	for _, k := range []string{"pipeline_tag", "library_name"} {
		if v, ok := card[k].(string); ok {
			info[k] = v
		}
	}
	if cfg := modelConfig(head); cfg != nil {
		info["config"] = cfg
	}
	if st := c.objects.parameters(head); st != nil {
		info["safetensors"] = st
	}
	return info
}

// modelConfig is the excerpt of config.json that the hub shows.
func modelConfig(c *Commit) map[string]any {
	var cfg struct {
		Architectures []string `json:"architectures"`
		ModelType     string   `json:"model_type"`
	}
	if json.Unmarshal([]byte(c.Files["config.json"].content), &cfg) != nil {
		return nil
	}
	return map[string]any{"architectures": cfg.Architectures, "model_type": cfg.ModelType}
}

// parameters counts the parameters by dtype over all safetensors files of a commit; nil when there are none.
func (s *objects) parameters(c *Commit) map[string]any {
	params, total := map[safetensors.DType]int64{}, int64(0)
	for p, e := range c.Files {
		o := s.get(e.SHA256)
		if path.Ext(p) != ".safetensors" || strings.Contains(p, "/") || o == nil || o.body == nil {
			continue
		}
		header, err := safetensors.ReadHeader(o.body, o.size)
		if err != nil {
			continue // a header that cannot be read counts nothing
		}
		for _, t := range header.Tensors {
			params[t.DType] += t.NElems()
			total += t.NElems()
		}
	}
	if total == 0 {
		return nil
	}
	return map[string]any{"parameters": params, "total": total}
}

func siblings(c *Commit, blobs bool) []map[string]any {
	out := []map[string]any{}
	for _, p := range slices.Sorted(maps.Keys(c.Files)) {
		e, f := c.Files[p], map[string]any{"rfilename": p}
		if blobs {
			f["size"], f["blobId"] = e.Size, e.BlobID
			if e.isLFS() {
				f["lfs"] = map[string]any{"sha256": e.SHA256, "size": e.Size, "pointerSize": len(pointer(e.SHA256, e.Size))}
			}
		}
		out = append(out, f)
	}
	return out
}

// cardTags are the tags that the hub derives from the model card.
func cardTags(card map[string]any) []string {
	tags := append([]string{}, stringsOf(card["tags"])...)
	if lib, ok := card["library_name"].(string); ok {
		tags = append(tags, lib)
	}
	for _, base := range stringsOf(card["base_model"]) {
		tags = append(tags, "base_model:"+base)
		if rel, ok := card["base_model_relation"].(string); ok {
			tags = append(tags, "base_model:"+rel+":"+base)
		}
	}
	for _, l := range stringsOf(card["license"]) {
		tags = append(tags, "license:"+l)
	}
	return append(tags, "region:us")
}

// stringsOf reads a YAML value that may be a string or a list of strings.
func stringsOf(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, e := range v {
			if t, ok := e.(string); ok {
				out = append(out, t)
			}
		}
		return out
	}
	return nil
}

func refs(c *call) (any, error) {
	groups := map[string][]map[string]any{"branches": {}, "converts": {}, "tags": {}, "pullRequests": {}}
	for _, ref := range slices.Sorted(maps.Keys(c.repo.refs)) {
		group, name := "pullRequests", ref
		if branch, ok := strings.CutPrefix(ref, "refs/heads/"); ok {
			group, name = "branches", branch
		} else if tag, ok := strings.CutPrefix(ref, "refs/tags/"); ok {
			group, name = "tags", tag
		}
		groups[group] = append(groups[group], map[string]any{"name": name, "ref": ref, "targetCommit": c.repo.refs[ref]})
	}
	if !isTrue(c.r.URL.Query().Get("include_prs")) {
		delete(groups, "pullRequests")
	}
	return groups, nil
}
