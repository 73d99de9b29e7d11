package reader

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/python"
)

// A Folder says which files of a local folder belong to the model in it. A repo holds what someone
// published. A folder may hold anything: keys, logs, data. So only those files belong to the model
// that one of its readers opens, and the others stay where they are.
type Folder struct {
	dirs    map[string]bool // where readers look: ".", and the parts
	needed  map[string]bool // files that configs, code, and the card name
	include []inclusion
	ignore  map[string]globs // the patterns of each .gitignore, by its folder, "." for the root
	unread  map[string]bool  // where the .gitignore ignores everything: it can't be read or is too long

	mu     sync.Mutex         // of these:
	left   steps              // for matching with those patterns
	judged map[string]verdict // what they say of files, by path

	// files that can't be read, and that people but no programs read
	unusable map[string]bool
	has      map[string]bool
	links    map[string]string // Files.Links
}

// Files are those of a local folder.
type Files struct {
	Paths []string
	// Links has the files that are links to others below the folder, each with the path of the file
	// that it leads to in the end.
	Links map[string]string
	// Unusable files can't be read, such as broken links: those that only people read stay where
	// they are.
	Unusable []string
	// Read returns a small file, or nil if it can't be read.
	Read func(name string) []byte
}

// NewFolder returns the Folder with these files. include are patterns as in a .gitignore, of files
// that come along too. As there, the last pattern that matches a file counts, and one that begins
// with an exclamation mark takes files out again.
func NewFolder(files Files, include []string) *Folder {
	f := &Folder{dirs: map[string]bool{".": true}, needed: map[string]bool{}, ignore: map[string]globs{},
		unread: map[string]bool{}, unusable: map[string]bool{}, has: setOf(files.Paths), links: files.Links,
		left: maxSteps, judged: map[string]verdict{}}
	for _, p := range files.Unusable {
		f.unusable[p] = UseOf(p) == Ignores && p != names.Card
	}
	for _, pattern := range include {
		pattern, not := strings.CutPrefix(pattern, "!")
		f.include = append(f.include, inclusion{globs{newGlob(pattern)}, strings.Trim(pattern, "/"), not})
	}
	s := &search{f, files.Read, maxRead}
	s.findIgnores(files.Paths)
	s.findParts()
	for _, p := range files.Paths {
		if f.dirs[path.Dir(p)] && strings.HasSuffix(p, ".json") && IsOpened(path.Base(p)) {
			s.needModules(p)
		}
	}
	s.needPictures()
	return f
}

// Opens reports whether a reader of the model opens a file, or people need it.
func (f *Folder) Opens(name string) bool { return f.isOpened(name) }

// isOpened reports whether a reader of the model opens a file, or people need it: license, notice,
// and the card's pictures.
func (f *Folder) isOpened(name string) bool {
	return f.isKnown(name) && !f.unusable[name] && !f.keepsBack(name)
}

// withholds reports whether a reader of the model would open a file by its name alone, which many
// models have, but the folder keeps it back.
func (f *Folder) withholds(name string) bool {
	return f.dirs[path.Dir(name)] && opened[path.Base(name)] && f.keepsBack(name)
}

// KeepsBack says why a result takes nothing of a file, unless the caller includes it: the file is
// hidden, or a .gitignore names it, or it's a link to such a file. Otherwise KeepsBack returns "".
func (f *Folder) KeepsBack(name string) (why string) {
	if f.Includes(name) || !f.keepsBack(name) {
		return ""
	}
	return f.whyKept(name, "named by a .gitignore")
}

func (f *Folder) keepsBack(name string) bool { return f.isHidden(name) || f.isIgnored(name) }

// isHidden reports whether a file is hidden, or a link to a file that is. A file that isn't among
// those of the folder counts as hidden: it's in a folder that isn't part of the source.
func (f *Folder) isHidden(name string) bool {
	target, isLink := f.links[name]
	return isHidden(name) || isLink && (isHidden(target) || !f.has[target])
}

func (f *Folder) isKnown(name string) bool {
	dir, base := path.Dir(name), path.Base(name)
	switch {
	case f.needed[name]:
		return true
	case dir == "additional_chat_templates":
		return path.Ext(base) == ".jinja"
	case dir == "custom_generate":
		return base == "generate.py" || base == "requirements.txt"
	}
	return f.dirs[dir] && (IsOpened(base) || IsNotice(base) || isFound(base) || isVariant(base))
}

// isHidden reports whether a file or a folder above it is hidden. Keys and tokens are kept in such
// files.
func isHidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.Contains(name, "/.")
}

// Target returns the file that a link to another file of the folder leads to in the end, and any
// other file itself.
func (f *Folder) Target(name string) string {
	if target, isLink := f.links[name]; isLink {
		return target
	}
	return name
}

// Includes reports whether a file comes along because a caller's pattern names it.
func (f *Folder) Includes(name string) bool {
	for _, i := range slices.Backward(f.include) {
		if f.isNamed(name, i) {
			return !i.not
		}
	}
	return false
}

func (f *Folder) isNamed(name string, by inclusion) bool { return by.names(name, f.isHidden(name)) }

// An inclusion is a caller's pattern of files that come along too.
type inclusion struct {
	globs
	text string // without slashes at its ends
	not  bool   // it takes files out again
}

// names reports whether the pattern names a file. A hidden one must be spelled out from the root:
// "*" in a shell doesn't match it either. What is in hidden folders isn't even listed.
func (i inclusion) names(file string, isHidden bool) bool {
	if isHidden {
		return file == i.text
	}
	return i.globs.names(file)
}

// Unmatched returns the first pattern of include that no file matches, or "".
func (f *Folder) Unmatched(include, paths []string) string {
	for i, pattern := range include {
		if !slices.ContainsFunc(paths, func(p string) bool { return f.isNamed(p, f.include[i]) }) {
			return pattern
		}
	}
	return ""
}

// isIgnored reports whether a .gitignore names a file or a folder above it, or what a link leads
// to.
func (f *Folder) isIgnored(name string) bool {
	_, ignored := f.ignoredBy(name)
	if target, isLink := f.links[name]; isLink && !ignored {
		_, ignored = f.ignoredBy(target)
	}
	return ignored
}

// A verdict is what the .gitignores say of a file: whether they name it, and the folder of the one
// that does.
type verdict struct {
	ignored bool
	dir     string // "." for the root, "" if matching took too long
}

// ignoredBy returns the folder of a .gitignore that names a file or a folder above it. Git lets the
// .gitignore of a folder below bring files back; here it doesn't. Once matching has taken very
// long, a .gitignore counts as naming every file that hasn't been matched.
func (f *Folder) ignoredBy(name string) (dir string, ignored bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v, known := f.judged[name]
	if !known {
		v = f.judge(name)
		f.judged[name] = v
	}
	return v.dir, v.ignored
}

func (f *Folder) judge(name string) verdict {
	if len(f.ignore) == 0 {
		return verdict{}
	}
	for i := len(name); i >= 0; {
		i = strings.LastIndexByte(name[:i], '/')
		dir, below := ".", name
		if i >= 0 {
			dir, below = name[:i], name[i+1:]
		}
		f.left.take(len(dir))
		ignored := f.ignore[dir].ignores(below, &f.left)
		if f.left < 0 {
			return verdict{true, ""}
		}
		if ignored {
			return verdict{true, dir}
		}
	}
	return verdict{}
}

// whyKept says why a file is kept back. ignored is the reason if a .gitignore that can be read
// names the file. What a link leads to is private, so whyKept doesn't name it.
func (f *Folder) whyKept(name, ignored string) string {
	dir, isIgnored := f.ignoredBy(name)
	switch _, isLink := f.links[name]; {
	case isIgnored && dir == "":
		return "the .gitignores take very long to match, so they count as naming every file"
	case isIgnored && f.unread[dir]:
		return fmt.Sprintf("%s can't be read or is too long, so it counts as naming every file",
			path.Join(dir, ".gitignore"))
	case isIgnored:
		return ignored
	case isLink:
		return "a link to a file that is hidden or named by a .gitignore"
	}
	return "hidden"
}

// opened are the files that transformers, diffusers, and sentence-transformers open by their names,
// other than weights: their configs, and the files of their tokenizers and processors.
var opened = setOf(strings.Fields(`
	config.json generation_config.json model_index.json scheduler_config.json
	preprocessor_config.json processor_config.json video_preprocessor_config.json
	image_processor_config.json audio_tokenizer_config.json feature_extractor_config.json
	chat_template.jinja chat_template.json
	tokenizer.json tokenizer_config.json special_tokens_map.json added_tokens.json tekken.json
	vocab.json vocab.txt vocab.bpe merges.txt encoder.json bpe.codes dict.txt emoji.json
	tokenizer.model sentencepiece.model sentencepiece.bpe.model spiece.model spm.model
	spm_char.model source.spm target.spm vocab-src.json vocab-tgt.json target_vocab.json
	entity_vocab.json normalizer.json byte_maps.json word_shape.json word_pronunciation.json
	prophetnet.tokenizer tiktoken.model
	modules.json config_sentence_transformers.json router_config.json wordembedding_config.json
	whitespacetokenizer_config.json`))

// openedToo matches the names of which each model has its own.
var openedToo = regexp.MustCompile(`^(sentence_(bert|roberta|distilbert|camembert|albert|xlm-roberta|xlnet)_config\.json|[\w.-]+\.tiktoken|` +
	`tokenizer\.model\.v\d+(m\d+)?)$`)

// IsOpened reports whether a reader of a model opens a file by its name alone, other than weights.
func IsOpened(base string) bool { return opened[base] || openedToo.MatchString(base) }

// A search fills in a Folder.
type search struct {
	*Folder
	from func(name string) []byte
	left int // bytes to read
}

// maxRead is how many bytes of small files a search reads. The vocabularies of a pipeline, which
// are the largest, have a tenth of that. Decoding takes seconds.
const maxRead = 32 << 20

// read returns a file, or nil if it can't be read. After maxRead bytes, no file can.
func (s *search) read(name string) []byte {
	if s.left <= 0 {
		return nil
	}
	b := s.from(name)
	s.left -= len(b)
	return b
}

// findIgnores reads the .gitignores. Once there's too much in them, it needs no more of them.
func (s *search) findIgnores(paths []string) {
	var read ignores
	for _, p := range paths {
		if path.Base(p) != ".gitignore" {
			continue
		}
		var text []byte
		if read.bytes <= maxIgnoreBytes && read.patterns <= maxIgnore {
			text = s.read(p)
		}
		g, whole := read.parse(text)
		s.ignore[path.Dir(p)], s.unread[path.Dir(p)] = g, !whole
	}
}

// object reads a JSON object. It's empty if it can't be read.
func (s *search) object(name string) (o map[string]any) {
	if s.has[name] {
		_ = python.Unmarshal(s.read(name), &o)
	}
	return o
}

// findParts finds the folders of a pipeline's components and of sentence-transformers' modules, and
// the code that they come with.
func (s *search) findParts() {
	index := s.object(names.ModelIndex)
	for _, dir := range slices.Sorted(maps.Keys(index)) {
		of, _ := index[dir].([]any)
		switch {
		case dir == "_class_name" && len(of) > 0: // a pipeline that comes with the model
			s.needModule(".", of[0])
		case !strings.HasPrefix(dir, "_") && len(of) == 2 && path.Base(dir) == dir:
			s.dirs[dir] = true
			s.needModule(dir, of[0])
		}
	}
	var modules []struct {
		Path string `json:"path"`
		Type string `json:"type"`
	}
	if s.has["modules.json"] && python.Unmarshal(s.read("modules.json"), &modules) == nil {
		for _, m := range modules {
			if !strings.HasPrefix(m.Path, ".") && m.Path != "" {
				s.dirs[path.Clean(m.Path)] = true
			}
			if i := strings.LastIndexByte(m.Type, '.'); i > 0 {
				s.needModule(".", m.Type[:i])
			}
		}
	}
}

// needModules finds the code that a config's auto_map names: module.Class, or a list of these.
func (s *search) needModules(config string) {
	o := s.object(config)
	need := func(of any) {
		if text, ok := of.(string); ok && !strings.Contains(text, "--") { // the code of another repo
			module, _, _ := strings.Cut(text, ".")
			s.needModule(path.Dir(config), module)
			s.needModule(".", module)
		}
	}
	autoMap, _ := o["auto_map"].(map[string]any)
	for _, class := range slices.Sorted(maps.Keys(autoMap)) {
		need(autoMap[class])
		list, _ := autoMap[class].([]any)
		for _, x := range list {
			need(x)
		}
	}
	pipelines, _ := o["custom_pipelines"].(map[string]any)
	for _, task := range slices.Sorted(maps.Keys(pipelines)) {
		if of, ok := pipelines[task].(map[string]any); ok {
			need(of["impl"])
		}
	}
}

// relativeImport matches what a module imports from its own package, as transformers finds it, and
// the names that "from . import" lists.
var relativeImport = regexp.MustCompile(`(?m)^\s*(?:import\s+\.(\S+)\s*$|from\s+\.(\S+)\s+import|` +
	`from\s+\.\s+import\s+\(?([\w, \t]+))`)

// needModule adds the file of a Python module in a folder, and what it imports from there.
func (s *search) needModule(dir string, module any) {
	text, _ := module.(string)
	if text == "" || strings.Trim(text, ".") != text {
		return
	}
	file := path.Join(dir, strings.ReplaceAll(text, ".", "/")+".py")
	if !s.has[file] || s.needed[file] {
		return
	}
	s.needed[file] = true
	for _, m := range relativeImport.FindAllStringSubmatch(string(s.read(file)), -1) {
		for _, name := range strings.Split(m[1]+m[2]+m[3], ",") {
			name, _, _ = strings.Cut(strings.TrimSpace(name), " ")
			s.needModule(path.Dir(file), name)
		}
	}
}

// picture matches the links to pictures in a card.
var picture = regexp.MustCompile(`(?i)!\[[^\]\n]*\]\(\s*<?([^)>\s]+)|<(?:img|source|video)\b[^>]*?\bsrc\s*=\s*["']([^"'\s]+)`)

// isPicture matches the names of pictures.
var isPicture = regexp.MustCompile(`(?i)\.(png|jpe?g|gif|svg|webp|bmp|mp4|webm)$`)

// needPictures adds the pictures that the card shows, if the result takes something of the card.
func (s *search) needPictures() {
	if !s.has[names.Card] || s.keepsBack(names.Card) {
		return
	}
	for _, m := range picture.FindAllSubmatch(s.read(names.Card), -1) {
		if name := path.Clean(string(m[1]) + string(m[2])); isPicture.MatchString(name) && s.has[name] {
			s.needed[name] = true
		}
	}
}
