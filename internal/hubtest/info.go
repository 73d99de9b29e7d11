package hubtest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

const hubTime = "2006-01-02T15:04:05.000Z"

// modelInfo answers GET /api/models/{id}[/revision/{rev}].
func (s *Server) modelInfo(w http.ResponseWriter, r *http.Request) error {
	rp, _, err := s.repoFor(r, accessInfo)
	if err != nil {
		return err
	}
	rev := r.PathValue("rev")
	if rev == "" {
		rev = "main"
	}
	c, err := s.commitAt(rp, rev)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	if expand := q["expand"]; len(expand) > 0 {
		if q.Has("blobs") || q.Has("securityStatus") {
			return fail(http.StatusBadRequest, "expand cannot be combined with blobs or securityStatus")
		}
		writeJSON(w, http.StatusOK, s.expanded(rp, c, expand))
		return nil
	}
	info := s.info(rp, c)
	info["siblings"] = siblings(c, q.Get("blobs") == "true" || q.Get("blobs") == "1")
	writeJSON(w, http.StatusOK, info)
	return nil
}

// expanded returns only the properties that were asked for.
func (s *Server) expanded(rp *repo, c *commit, props []string) map[string]any {
	all := s.info(rp, c)
	all["siblings"] = siblings(c, false)
	out := map[string]any{"_id": all["_id"], "id": all["id"]}
	for _, p := range props {
		if v, ok := all[p]; ok {
			out[p] = v
		}
	}
	return out
}

func (s *Server) info(rp *repo, c *commit) map[string]any {
	s.mu.Lock()
	opts, name := rp.opts, rp.name
	s.mu.Unlock()
	var gated any = false
	if opts.Gated != "" {
		gated = opts.Gated
	}
	card, _ := parseCard(c.files["README.md"].content)
	info := map[string]any{
		"_id": blobID([]byte(name))[:24], "id": name, "modelId": name, "author": rp.namespace(),
		"sha": c.oid, "createdAt": rp.created.UTC().Format(hubTime), "lastModified": c.date.UTC().Format(hubTime),
		"private": opts.Private, "gated": gated, "disabled": opts.Disabled,
		"downloads": 0, "likes": 0, "tags": cardTags(card), "usedStorage": usedStorage(c), "spaces": []string{},
	}
	if card != nil {
		info["cardData"] = card
	}
	for _, k := range []string{"pipeline_tag", "library_name"} {
		if v, ok := card[k].(string); ok {
			info[k] = v
		}
	}
	if cfg := modelConfig(c); cfg != nil {
		info["config"] = cfg
	}
	if st := s.safetensorsInfo(c); st != nil {
		info["safetensors"] = st
	}
	return info
}

func usedStorage(c *commit) int64 {
	var n int64
	for _, e := range c.files {
		n += e.size
	}
	return n
}

// modelConfig is the excerpt of config.json that the hub shows.
func modelConfig(c *commit) map[string]any {
	var cfg struct {
		Architectures []string `json:"architectures"`
		ModelType     string   `json:"model_type"`
	}
	if json.Unmarshal(c.files["config.json"].content, &cfg) != nil {
		return nil
	}
	return map[string]any{"architectures": cfg.Architectures, "model_type": cfg.ModelType}
}

func siblings(c *commit, blobs bool) []map[string]any {
	out := []map[string]any{}
	for _, p := range slices.Sorted(maps.Keys(c.files)) {
		e, f := c.files[p], map[string]any{"rfilename": p}
		if blobs {
			f["size"], f["blobId"] = e.size, e.oid
			if e.isLFS() {
				f["lfs"] = map[string]any{"sha256": e.sha256, "size": e.size, "pointerSize": len(pointer(e.sha256, e.size))}
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

// refs answers GET /api/models/{id}/refs.
func (s *Server) refs(w http.ResponseWriter, r *http.Request) error {
	rp, _, err := s.repoFor(r, accessInfo)
	if err != nil {
		return err
	}
	s.mu.Lock()
	all := maps.Clone(rp.refs)
	s.mu.Unlock()
	groups := map[string][]map[string]any{"refs/heads/": {}, "refs/tags/": {}, "refs/pr/": {}, "refs/convert/": {}}
	for _, ref := range slices.Sorted(maps.Keys(all)) {
		for prefix := range groups {
			if name, ok := strings.CutPrefix(ref, prefix); ok {
				if prefix == "refs/pr/" || prefix == "refs/convert/" {
					name = ref
				}
				groups[prefix] = append(groups[prefix], map[string]any{"name": name, "ref": ref, "targetCommit": all[ref]})
			}
		}
	}
	out := map[string]any{"branches": groups["refs/heads/"], "converts": groups["refs/convert/"], "tags": groups["refs/tags/"]}
	if p := r.URL.Query().Get("include_prs"); p == "1" || p == "true" {
		out["pullRequests"] = groups["refs/pr/"]
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

// commits answers GET /api/models/{id}/commits/{rev}, newest first.
func (s *Server) commits(w http.ResponseWriter, r *http.Request) error {
	rp, _, err := s.repoFor(r, accessInfo)
	if err != nil {
		return err
	}
	c, err := s.commitAt(rp, r.PathValue("rev"))
	if err != nil {
		return err
	}
	list := []map[string]any{}
	for _, c := range s.history(rp, c) {
		list = append(list, map[string]any{"id": c.oid, "title": c.title, "message": c.message,
			"authors": []map[string]any{{"user": c.author}}, "date": c.date.UTC().Format(time.RFC3339Nano)})
	}
	return writePage(s, w, r, list)
}

func (s *Server) history(rp *repo, c *commit) []*commit {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*commit
	for ; c != nil; c = rp.commits[c.parent] {
		out = append(out, c)
	}
	return out
}
