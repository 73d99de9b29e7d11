package hint

// againstOriginal says how to name an original that a DF11 model doesn't name.
const againstOriginal = "name the original with --against org/name, or --against PATH if it was " +
	"made from a folder or a file"

// makePrivate says how to hide a repo.
const makePrivate = "make it private in its settings"

// otherFolder is what to do about a target for a command that makes only a folder.
const otherFolder = "choose another folder with -o"

// freeThere is what to do about a full disk.
const freeThere = "free some space there, or name a folder on another disk"

// Space and memory.
var (
	DiskFull   = row("DiskFull", "free some space, or use another disk")
	DiskBudget = row("DiskBudget", "raise --disk, or leave it out")
	DiskFolder = rowOr("DiskFolder", freeThere+" with -o or --work-dir", ListDiskFolder,
		freeThere+" with --work-dir", freeThere+" with -o")
	MemoryBudget = row("MemoryBudget", "raise --memory, or leave it out")
	MemoryLimit  = row("MemoryLimit", "run it with a higher memory limit: of the container's or job's, "+
		"three quarters are used")
)

// Folders and targets.
var (
	Folder       = row("Folder", "choose another folder with {flag}")
	FolderLocked = row("FolderLocked", "wait until the other run ends, or choose another folder with {flag}")
	FolderUnsafe = row("FolderUnsafe", "choose a folder of your own with {flag}")
	FolderShared = row("FolderShared", "choose a folder of your own with {flag}; or let only yourself "+
		"write there: chmod {mode} {$folder}")
	FolderAbove = row("FolderAbove", "choose a folder of your own with {flag}, such as one below your "+
		"home; or let users rename only their own files there: chmod +t {$folder}")
	FolderReadOnly  = row("FolderReadOnly", "choose a folder on a disk that isn't read-only with {flag}")
	FolderForbidden = row("FolderForbidden", "choose a folder that you may write to with {flag}")
	FolderIsFile    = row("FolderIsFile", "choose a path with {flag} that doesn't lead through a file")
	FolderInUse     = row("FolderInUse", "choose a folder of its own: -o {$folder}; or add --force",
		"choose a folder of its own: -o {$folder}")
	Path          = row("Path", "check the path")
	PathForbidden = row("PathForbidden", "check the permissions of the file, and those of the folders above it")
	NotFile       = row("NotFile", "name a file: there's a folder, a pipe, or a device in its place")
	FileSize      = row("FileSize", "raise the limit of a file's size, which ulimit -f shows; if that's unlimited, "+
		"write to a disk that takes larger files")
	OpenFiles    = row("OpenFiles", "run it where more files may be open at once: ulimit -Hn shows how many")
	PathTooLarge = row("PathTooLarge", "check that this is the file you mean: it's too large to be one of "+
		"its kind")
	Conflict = rowOr("Conflict", "choose another target with -o or --repo-id (a work folder with "+
		"--work-dir), or add --force to write there anyway", ListConflict, otherFolder)
	Retrained = rowOr("Retrained", "add --force, if that's an earlier state of this model: it replaces "+
		"that; else choose another target with -o or --repo-id", ListConflict, otherFolder)
	Edited = rowOr("Edited", "make the change in a copy of the source and convert that with --original, which "+
		"keeps it; or undo it with --force; or choose another target with -o or --repo-id", ListEdited, otherFolder)
	Stays = rowOr("Stays", "move these files elsewhere, or choose another target with -o or --repo-id; --force "+
		"replaces only what has the name of a file of the result", ListStays,
		"move these files elsewhere, or "+otherFolder)
	Newer = rowOr("Newer", "update df11-convert, or add --force to make it again as this version "+
		"does", NewerManifest, "update df11-convert, or "+otherFolder)
	NewerManifest  = row("NewerManifest", "update df11-convert")
	SourceIsTarget = rowOr("SourceIsTarget", "choose another target with {flag}", ListTarget)
	Taken          = rowOr("Taken", "choose another target with --repo-id or -o, or wait until the "+
		"other run ends", ListTaken)
	Lost = rowOr("Lost", "see to it that nothing else publishes to {target}, and run the same "+
		"command again with --force", ListLost, otherFolder)
	Witness = rowOr("Witness", "run the same command again, which publishes these files again; if that "+
		"doesn't help, publish to a new repo with --repo-id, and report it to the operators of the Hub",
		ListWitness)
	Visibility = rowOr("Visibility", makePrivate+", choose another target with --repo-id, or allow it "+
		"with --public if the license does", ListVisibility)
	NotPrivate = rowOr("NotPrivate", makePrivate+", or choose another target with --repo-id",
		ListVisibility)
	// huggingface_hub has hf repos since 1.5, and no hf repo since 2:
	// https://github.com/huggingface/huggingface_hub/pull/3848
	Shown = row("Shown", "hide it with: hf repos settings {$repo} --private (after that, the same command "+
		"goes on), or delete it with: hf repos delete {$repo}")
	Card = rowOr("Card", "name the license with --license ID, such as mit, or fix the front matter of "+
		"the source's README.md", ListCard)
	License = row("License", "list them at https://huggingface.co/docs/hub/repositories-licenses; "+
		"other is one, too")
	NotOriginal = row("NotOriginal", "leave --original out; if you trained from that model, name it as "+
		"base_model in the source's README.md: the card then says so")
	OriginalIsSource = row("OriginalIsSource", "leave --original out")
	ArrangedHere     = row("ArrangedHere", "leave --level full out; or download the original, with hf "+
		"download, and name its folder with --against")
	PartsMissing  = row("PartsMissing", "make those parts with --shard, then run --finish again")
	RepoName      = row("RepoName", "name the target with --repo-id ORG/NAME")
	PublisherRepo = row("PublisherRepo", "set HF_OIDC_RESOURCE to the target")
	LargeFile     = row("LargeFile", "choose the layout with one file per module: --layout "+
		"transformers or diffusers")
	ManyFiles = row("ManyFiles", "choose a layout with fewer files with --layout")
)

// The source's files.
var (
	SourceChanged = row("SourceChanged", "run the same command again once nothing writes to it")
	SourceCorrupt = row("SourceCorrupt", "try another network; if it fails again, the file is damaged "+
		"at the source")
	Link        = row("Link", "fetch the file again, or remove the link if the model doesn't need it")
	LinkOutside = row("LinkOutside", "replace the link with the file if it belongs to the model, or "+
		"remove it")
	LinkIncluded = row("LinkIncluded", "replace the link with the file if it belongs to the model, or leave it "+
		"out with --include {$not} at the end")
	HardLink = row("HardLink", "replace it with a copy of its own if it isn't private, or publish it with "+
		"--include {$file}")
	Token       = row("Token", "publish it with --private; if it's no secret, add --include {$file}")
	Kept        = row("Kept", "publish it with --include {$file}, or take its name out of the .gitignore")
	Pointer     = row("Pointer", "fetch it with: git lfs pull")
	HubCut      = row("HubCut", "tell the owner of the repo that the file is incomplete there")
	HubPointer  = row("HubPointer", "tell the owner of the repo that the weights were never uploaded there")
	FileAndFlag = row("FileAndFlag", "name the folder and --file, or just the file")
	NotFolder   = row("NotFolder", "check the path; a Hub id is org/name or org/name@revision, made of "+
		"letters, digits, -, _, and .")
	NearPath   = row("NearPath", "did you mean {$path}, which is on this machine?")
	ModelAlone = row("ModelAlone", "put the files of the model alone into a folder, and give that as the "+
		"source; from a repo, get them with: hf download ORG/NAME FILES --local-dir FOLDER")
	IncludeRepo  = row("IncludeRepo", "leave --include out")
	IncludeNone  = row("IncludeNone", "list the files that stay with: df11-convert plan")
	IncludeNever = row("IncludeNever", "leave it out")
	Unaccounted  = row("Unaccounted", "report it, with the name of the model")
)

// Addresses of models.
var (
	EmptyRevision = row("EmptyRevision", "leave out the @, or name a branch, a tag, or a commit after it")
	NotHubPage    = row("NotHubPage", "write org/name, https://huggingface.co/org/name or hf://org/name")
	AddressSecret = row("AddressSecret", "leave it out, and log in with: hf auth login; addresses end up in logs, and in "+
		"the history of your shell")
	NotModel     = row("NotModel", "name a model, such as Qwen/Qwen3-8B")
	NoModelNamed = row("NoModelNamed", "add the model to the address: org/name")
)

// Headers of safetensors files. Only a file that is incomplete is worth fetching again.
var (
	HeaderCut  = row("HeaderCut", "fetch the file again: it's incomplete; if the Hub's is too, tell its owner")
	HeaderText = row("HeaderText", "fetch the file from its own address: what was saved is an answer in "+
		"words, such as a login page or an error")
	HeaderOverlap = row("HeaderOverlap", "save each tensor with bytes of its own: leave out the copy of a "+
		"tied one, or clone it before saving")
	HeaderLength = row("HeaderLength", "check that it is a safetensors file: its first 8 bytes aren't "+
		"the length of a header")
	HeaderLimit = row("HeaderLimit", "save the model in several files with shorter headers, or without "+
		"what isn't a weight; docs/format.md §16 has the limits")
	// no advice to cut it off: a header that lost a tensor looks the same
	HeaderTail = row("HeaderTail", "save the model again with the safetensors library; don't cut off what "+
		"the header doesn't describe, because it may be weights")
	HeaderMetadata = row("HeaderMetadata", "save the model again with strings as the values of its "+
		"metadata, and with another name for a tensor that is called so")
	HeaderAsWritten = row("HeaderAsWritten", "save the model again with the safetensors library, from a "+
		"program that can read it; if the file is on the Hub, tell its owner")
)

// Models that can't be converted as asked.
var (
	// of an entry of the catalog, which has the text
	Entry = row("Entry", "{text}")

	IsDF11 = row("IsDF11", "add --layout for another layout; check it with: df11-convert verify {$model}; "+
		"get the BF16 files back with: df11-convert decode {$model}")
	PublishDF11 = row("PublishDF11", "run the command that made the folder again, with --push and -o "+
		"{$folder}; without its source, add --layout {layout} here, which decodes the folder and makes it "+
		"again")
	PublishFile = row("PublishFile", "run the command that made it again, with --push and -o {$folder}")
	OtherFamily = row("OtherFamily", "choose a layout of that family, or get the original back with: "+
		"df11-convert decode {$model}")
	NotArranged = row("NotArranged", "convert ComfyUI's own file of the model")
	Download    = row("Download", "download it first: hf download {$repo} --local-dir FOLDER; then: "+
		"df11-convert ./FOLDER --layout {layout}, with your other flags")
	WrongDF11   = row("WrongDF11", "find out what is wrong with: df11-convert verify {$model}")
	FirstFormat = row("FirstFormat", "convert its original instead")
	Quantized   = row("Quantized", "quantized weights are already smaller than DF11: start from the "+
		"model's BF16 original; FP8 weights can use ECF8 of the same authors")
	NamedOriginal = row("NamedOriginal", "start from the model that its card names: df11-convert plan {$repo}")
	IsF32         = row("IsF32", "if this is a BF16 model saved as F32, add --exact-f32, which checks every "+
		"value; otherwise keep F32: a cast to BF16 loses bits")
	IsF16 = row("IsF16", "DF11 holds BF16 only and a cast loses bits; keep F16, or use ZipNN, which is "+
		"lossless for it")
	IsF64      = row("IsF64", "DF11 holds BF16 only and a cast loses bits")
	InexactF32 = row("InexactF32", "leave out --exact-f32: F32 tensors then stay as they are; or convert "+
		"the model to BF16 yourself first, if rounding is what you want")
	OnlyF32 = row("OnlyF32", "keep the model in F32, because its values aren't those of a BF16 model; if "+
		"rounding is what you want, convert it to BF16 yourself first")
	Adapter = row("Adapter", "merge the adapter into its base model first, or keep it as it is, next to a "+
		"DF11 model of its base: docs/comfyui.md and docs/python.md say where that works")
	NamedBase      = row("NamedBase", "merge the adapter into its base model first: its card names {repo}")
	VAE            = row("VAE", "leave it where it is: a VAE is loaded next to a DF11 model as next to any other")
	CheckpointFile = row("CheckpointFile", "look for a .safetensors version of the file, or save its tensors "+
		"with safetensors.torch.save_file in a program that you trust to read it")
	Pickle = row("Pickle", "re-save the model as safetensors, for example with "+
		"save_pretrained(safe_serialization=True), or look for a safetensors branch of the repo")
	OtherEnd = row("OtherEnd", "rename it to {name}")
	GGUF     = row("GGUF", "start from the original BF16 safetensors repo; a GGUF file is already its own "+
		"format")
	NoGain     = row("NoGain", "keep the model in BF16: DF11 wouldn't make it smaller")
	Incomplete = row("Incomplete", "fetch the source again and compare its size; if the model is "+
		"complete, name other modules with --pattern-dict")
	Unread       = row("Unread", "fetch it again, or correct it in a copy of the source")
	Rename       = row("Rename", "rename it in a copy of the source")
	ShorterNames = row("ShorterNames", "convert a model with fewer or shorter names")
	NameClash    = row("NameClash", "choose other modules with --pattern-dict, or rename one in a copy of the source")
	ShardMissing = row("ShardMissing", "complete the source")
	IndexMissing = row("IndexMissing", "complete the source; if the index is stale, remove it: a "+
		"complete set of shards needs none")
	IndexOrSingle = rowOr("IndexOrSingle", "complete the source, or choose the single file: --file "+
		"{$file}", ListIndexOrSingle)
	IndexStale  = row("IndexStale", "the index is stale or a shard is damaged; fetch the source again")
	StaleTensor = row("StaleTensor", "move the stale file elsewhere, or remove its entries from the index, or give "+
		"--pattern-dict for the source's own names")
	StatedMissing = rowOr("StatedMissing", "complete the source, or name the weights with --file",
		ListStatedMissing)
	TwoSets = rowOr("TwoSets", "choose one with --file, which takes a .safetensors file or an index",
		ListTwoSets)
	TwoShardSets = row("TwoShardSets", "move the shards of the set that isn't the model elsewhere")
	ManySingles  = rowOr("ManySingles", "name the one to convert with --file", ListManySingles)
	UnusualName  = rowOr("UnusualName", "rename the weight file to {name}, as the libraries do, or name it "+
		"with --file if it's a file for ComfyUI", ListUnusualName)
	NoWeights   = row("NoWeights", "give the folder or repo that holds the .safetensors files")
	NoSuchFile  = row("NoSuchFile", "name a file of the source, such as {files}")
	PartOfModel = row("PartOfModel", "name the folder or repo without the file")
	OtherModel  = row("OtherModel", "give the folder {$folder} as the source; download a repo first")
	Subfolder   = row("Subfolder", "give the folder as the source, such as {$folder}; download a repo first")
	NoPipeline  = rowOr("NoPipeline", "leave out --component", ListNoPipeline)
	NoComponent = rowOr("NoComponent", "name the folder of the denoiser with --component; these hold weights: "+
		"{folders}", ListNoComponent)
	TiedDiffer = rowOr("TiedDiffer", "set tie_word_embeddings to false in a copy of the source if the two "+
		"are really different; if its class ties them, fetch the source again", ListTiedDiffer)
	ListTiedDiffer = row("ListTiedDiffer", "set tie_word_embeddings to false in a copy of the source if the "+
		"two are really different; if its class ties them, ask its authors for the right weights, or add "+
		"expect: not_convertible to its entry")
	OtherTied = row("OtherTied", "set tie_word_embeddings to false in a copy of the source if the two "+
		"are really different")
)

// What to compress, and for whom.
var (
	Unknown = row("Unknown", "name the modules to compress with --pattern-dict, or use those of a similar "+
		"model with --like")
	DictForm = row("DictForm", "write an object of regular expressions, each with its list of attributes, "+
		"as in pattern_dict of: df11-convert plan SOURCE --json")
	Costly = row("Costly", "name the modules to compress by fewer or simpler patterns with "+
		"--pattern-dict")
	Disjoint      = row("Disjoint", "make the patterns disjoint")
	Nested        = row("Nested", "match either the block or the modules inside it")
	LoaderLoop    = row("LoaderLoop", "put that pattern before the other one")
	FirstRow      = row("FirstRow", "list row 0, too, or name the whole parameter")
	Dimensions    = row("Dimensions", "only weights of Linear and Embedding modules can be compressed; leave it out")
	NoParameters  = row("NoParameters", "leave them out of the pattern dict")
	ReaderRefuses = row("ReaderRefuses", "leave out --for")
	Unfilled      = row("Unfilled", "leave those modules out of the pattern dict, or accept them with --unfilled")
	ModulePath    = row("ModulePath", "match another module")
	RemainderName = row("RemainderName", "match its sub-modules instead")
	TooManyUnits  = row("TooManyUnits", "match larger modules")
	TooLarge      = row("TooLarge", "name their sub-modules with --pattern-dict")
	TiedHead      = row("TiedHead", "remove the embedding from the pattern dict")
	WhichLayout   = row("WhichLayout", "say what the result is for: --layout single for ComfyUI, or "+
		"--layout {layout}")
	Layout      = row("Layout", "choose one of: {layouts}")
	Like        = row("Like", "choose one of: {entries}")
	LikeUnknown = row("LikeUnknown", "name the entry that plan shows for a similar model, or a DF11 repo "+
		"that the catalog reproduces")
	LikeLayout = row("LikeLayout", "choose an entry for the source's layout")
)

// DF11 models and their originals.
var (
	NotDF11 = row("NotDF11", "give a DF11 model; to see what this model would become: df11-convert "+
		"plan {$model}")
	InsideDF11   = row("InsideDF11", "name that folder: {$folder}")
	OldDF11      = row("OldDF11", "convert its original again: df11-convert ORG/NAME")
	NoOriginal   = row("NoOriginal", againstOriginal)
	FolderHasOne = row("FolderHasOne", "verify its folder, which has a manifest: df11-convert verify "+
		"{$folder}; or "+againstOriginal)
	WholeFolder  = row("WholeFolder", "name its folder instead: {$folder}")
	Unfinished   = row("Unfinished", "run the same conversion again: it resumes")
	EmptyRepo    = row("EmptyRepo", "run the conversion to it again if it was stopped; else choose another repo")
	GoneOriginal = row("GoneOriginal", "name the original with --against org/name or PATH; or, if {repo} is "+
		"private, use a token that may read it; or compare with the manifest alone: HF_HUB_OFFLINE=1 "+
		"df11-convert verify {$model}")
	OwnOriginal   = row("OwnOriginal", "name the original's repo, or a folder elsewhere")
	OtherOriginal = row("OtherOriginal", "name the original it was made from, at the right commit, with --against")
	MaybeOther    = row("MaybeOther", "name another original with --against if {original} isn't it")
	Locate        = row("Locate", "name the first wrong weight with --level full")
	Rotten        = row("Rotten", "copy or download the model again: this file isn't the one that its "+
		"manifest lists")
	LeftOut = row("LeftOut", "fetch the original again if you need its file, because this model holds "+
		"only some of its tensors; verify --level full compares those")
	NotOfPair  = row("NotOfPair", "see what is wrong with: df11-convert verify {$model} --against {$original}")
	ByManifest = row("ByManifest", "add --against with the original if the manifest may be wrong; find out "+
		"what is wrong with: df11-convert verify {$model}")
	Occupied   = row("Occupied", "choose another folder with -o, or add --force to write there anyway")
	OwnInput   = row("OwnInput", "choose a folder outside it with -o")
	NoGPU      = row("NoGPU", "leave out --gpu: the check on the CPU needs none")
	NoKernel   = row("NoKernel", "give the Python environment of dfloat11, the folder of the ComfyUI node, or the file itself")
	Kernels    = row("Kernels", "give one of them")
	KernelFile = row("KernelFile", "choose another name, or replace it with --install")
	KernelGone = row("KernelGone", "delete {$file} if you don't need it")
)

// The Hub and the way to it. Facts: {endpoint}, {repo}, {token} (where it's from), {op} (what was
// asked), {login} (how to get a token), {variable} (which one sets the endpoint).
var (
	Login = row("Login", "log in with hf auth login, or set HF_TOKEN to an access token")
	// in place of Login
	TwoHubs = row("TwoHubs", "unset {variable}, which alone gets the token, convert into a folder, and "+
		"publish that")
	Again   = row("Again", "run the same command again; it continues where it stopped")
	AgainAt = row("AgainAt", "run the same command again once {endpoint}, which {variable} names, answers; it "+
		"continues where it stopped")
	Network = row("Network", "check your network; behind a proxy, set HTTPS_PROXY=http://user:password@"+
		"host:port; for a mirror, set HF_ENDPOINT")
	NetworkTo = row("NetworkTo", "check {variable}, which is {endpoint}; if that's right, check your "+
		"network; behind a proxy, set HTTPS_PROXY=http://user:password@host:port")
	NoETag = row("NoETag", "let the storage's answers keep their header ETag: a proxy of your network "+
		"seems to remove it")
	NetworkProxy = row("NetworkProxy", "check {variable}, which sends requests through the proxy {proxy}")
	NotHub       = row("NotHub", "check your network and its proxy: something else answers for {endpoint}")
	NotHubAt     = row("NotHubAt", "check {variable}, which is {endpoint}: what answers there isn't a Hub")
	WebPage      = row("WebPage", "log in to your network: a login page, a firewall, or a proxy answered "+
		"for {endpoint}")
	WebPageAt = row("WebPageAt", "check {variable}, which is {endpoint}: a web page answers there; if "+
		"that's right, it's a login page, a firewall, or a proxy of your network")
	Scheme       = row("Scheme", "check {variable}, which is {endpoint}: http:// and https:// may be mixed up")
	AnyScheme    = row("AnyScheme", "check the proxy of your network: http:// and https:// may be mixed up")
	EndpointUser = row("EndpointUser", "take the user, the password, and whatever follows ? or # out of "+
		"{variable}; a token goes to HF_TOKEN")
	Endpoint     = row("Endpoint", "set {variable} to an address such as https://huggingface.co, or unset it")
	NoScheme     = row("NoScheme", "write it with its scheme: {variable}=https://{endpoint}, or http://")
	BadToken     = row("BadToken", "set {variable} to the token alone, such as hf_…, without spaces or quotes")
	BadTokenFile = row("BadTokenFile", "log in again with hf auth login: {file} holds more than a token")
	Certificate  = row("Certificate", "if your network's proxy signs certificates, set SSL_CERT_FILE to the "+
		"file with its own, often the one in REQUESTS_CA_BUNDLE; on macOS and Windows, add it to the "+
		"system's certificates")
	CertificateTime = row("CertificateTime", "check this machine's clock; if it's right, the server needs a "+
		"new certificate")
	Firewall = row("Firewall", "let {host} through your firewall or proxy: the Hub answers, but this "+
		"storage of it doesn't; https://huggingface.co/docs/hub/models-downloading lists its hosts")
	ProxyLogin = row("ProxyLogin", "set {variable} to http://user:password@host:port")
	BadProxy   = row("BadProxy", "write it as http://user:password@host:port; in the user and the password, "+
		"a % is %25, an @ is %40, a # is %23, and a : is %3A")
	RequestSize = row("RequestSize", "raise the request limit of the server, or of a proxy in between "+
		"(nginx: client_max_body_size)")
	Report = row("Report", "report this with the output of -v: the Hub can't take what the program sent")

	NoRepo      = row("NoRepo", `check the spelling of "{repo}"; if the repo is private, {login}`)
	NoRepoToken = row("NoRepoToken", `check the spelling of "{repo}"; if the repo is private, the owner of `+
		"the token from {token} needs access to it")
	NoRevision = row("NoRevision", "check the revision after @: it can be a branch, a tag, or a commit")
	NoMain     = row("NoMain", "run the same command again if {repo} was just created; otherwise it's empty")
	NoRoute    = row("NoRoute", "check {variable}, because {endpoint} can't do this; if it's a read-only "+
		"mirror, set DF11_PUSH_ENDPOINT to the Hub to publish to")
	Offline      = row("Offline", "unset HF_HUB_OFFLINE to use the network")
	Unauthorized = row("Unauthorized", "{login}, from {endpoint}/settings/tokens")
	TokenRefused = row("TokenRefused", "the token from {token} is wrong or expired; make a new one at "+
		"{endpoint}/settings/tokens")
	TokenExpired = row("TokenExpired", "run hf auth login: the token from {token} {when}, and {reason}")
	Gated        = row("Gated", "open {endpoint}/{repo} in a browser, accept the terms, then {login}")
	GatedToken   = row("GatedToken", "request access at {endpoint}/{repo} in a browser; if you have it, give "+
		"the token from {token} the right to read gated repos")
	Forbidden      = row("Forbidden", "{login} that has this right")
	ForbiddenToken = row("ForbiddenToken", "give the token from {token} the right to {op} at "+
		"{endpoint}/settings/tokens, or use another token")
	Namespace = rowOr("Namespace", "choose your own namespace with --repo-id, or ask an admin of the "+
		"organization for the role write", ListNamespace)
	AccountName = row("AccountName", "write the whole ID, such as {repo}, or {same} if you mean that")
	ReadToken   = row("ReadToken", "make a token for writing at {endpoint}/settings/tokens, and set HF_TOKEN to it")
	Publisher   = row("Publisher", "allow the job id-token: write (GitHub), or set HF_OIDC_ID_TOKEN to an "+
		"identity for this hub, and add this workflow to the trusted publishers of the repo or user in "+
		"HF_OIDC_RESOURCE. Or unset HF_OIDC_RESOURCE and set HF_TOKEN")
	Quota = rowOr("Quota", "free or buy storage at {endpoint}/settings/billing, or choose another target "+
		"with --repo-id", ListQuota)
	Disabled = row("Disabled", "choose another source or target; {endpoint}/{repo} may say why")
	Legal    = row("Legal", "open {endpoint}/{repo} in a browser: it may say more")
	HubCard  = row("HubCard", "correct the value that it names in the source's README.md; to change the "+
		"README.md of a repo on the Hub, download the repo and convert the folder")
	TooMany = row("TooMany", "choose another layout with --layout; plan shows the number and size of the files")
	Corrupt = row("Corrupt", "run the same command again; if it fails again, the file is damaged in the "+
		"hub's store, or this machine's memory or disk is at fault")
	BranchMoved = row("BranchMoved", "run the same command again; someone else commits to {repo} at the same time")
	StaleLinks  = row("StaleLinks", "run the same command again, on a faster network if you can: the file "+
		"may take longer than the storage's links last, which is minutes")
)

// The command line and lists.
var (
	Similar     = row("Similar", "did you mean: df11-convert {command}")
	SimilarFlag = row("SimilarFlag", "did you mean --{flag}?")
	OtherFlag   = row("OtherFlag", "--{flag} is a flag of: df11-convert {command}")
	EntryFlag   = row("EntryFlag", "write {flag} into the list's entry")
	Help        = row("Help", "see df11-convert {command} --help")
	Commands    = row("Commands", "list the commands with: df11-convert --help")
	CardUnit    = row("CardUnit", "write a unit: --vram {number}GB")
	CardMemory  = row("CardMemory", "write how much memory the card has: --vram 24GB if it's 24 GB")
	NeedsCard   = row("NeedsCard", "add --vram 24GB, or a card such as --vram 4090")
	Task        = row("Task", "set JOB_COMPLETION_INDEX (Kubernetes, counted from 0), SLURM_ARRAY_TASK_ID "+
		"(Slurm), or CI_NODE_INDEX (GitLab)")
	ListForm = row("ListForm", "write the list like this: models: [org/name, {source: org/other, repo-id: "+
		"you/other-DF11}]; see docs/ci.md")
	// in a list, for the rows that name them
	ListConflict = row("ListConflict", "write another repo-id into the list's entry; or, to write there "+
		"anyway, put the model into a list of its own: df11-convert batch LIST --push --force")
	ListEdited = row("ListEdited", "undo the change: put the model into a list of its own, and run "+
		"df11-convert batch LIST --push --force; or keep it: make it in a copy of the source on the Hub, "+
		"and write that as the source into the entry")
	ListStays = row("ListStays", "delete these files in the repo, or write another repo-id into the "+
		"list's entry; batch --force replaces only what has the name of a file of the result")
	ListTarget    = row("ListTarget", "write another repo-id into the list's entry")
	ListNamespace = row("ListNamespace", "write a repo-id in your own namespace into the list's entry, "+
		"or ask an admin of the organization for the role write")
	ListQuota = row("ListQuota", "free or buy storage in the settings of the namespace, or write a "+
		"repo-id in another one into the list's entry")
	ListVisibility = row("ListVisibility", makePrivate+", write another repo-id into the list's entry, "+
		"or write private: false there if the license allows it")
	ListTaken   = row("ListTaken", "write another repo-id into the list's entry, or wait until the other run ends")
	ListWitness = row("ListWitness", "run the same command again, which publishes these files again; if "+
		"that doesn't help, write another repo-id into the list's entry, and report it to the operators "+
		"of the Hub")
	ListLost = row("ListLost", "see to it that nothing else publishes to {target}, then put the model "+
		"into a list of its own: df11-convert batch LIST --push --force")
	ListDiskFolder = row("ListDiskFolder", freeThere+" with --work-dir")
	ListCard       = row("ListCard", "write license: ID, such as mit, into the list's entry, or fix the front "+
		"matter of the source's README.md")
	ListIndexOrSingle = row("ListIndexOrSingle", "complete the source, or choose the single file: write "+
		"file: {$file} into the list's entry")
	ListStatedMissing = row("ListStatedMissing", "complete the source, or name the weights as file in "+
		"the list's entry")
	ListTwoSets = row("ListTwoSets", "choose one: write file, a .safetensors file or an index, into the "+
		"list's entry")
	ListManySingles = row("ListManySingles", "name the one to convert as file in the list's entry")
	ListUnusualName = row("ListUnusualName", "rename the weight file to {name}, as the libraries do, or "+
		"name it as file in the list's entry if it's a file for ComfyUI")
	ListNoPipeline  = row("ListNoPipeline", "remove component from the list's entry")
	ListNoComponent = row("ListNoComponent", "name the folder of the denoiser as component in the "+
		"list's entry; these hold weights: {folders}")
	NoPush = row("NoPush", "add --push, or remove {member} from the list's entry")
	Twice  = row("Twice", "delete one of the two entries")
	// neither is a default: the flag may be meant for all, and the entry as an exception
	Contradicts = row("Contradicts", "leave --private out, or delete private: false in the list")
	SameTarget  = row("SameTarget", "give each its own target with repo-id in the list")
	Unexpected  = row("Unexpected", "remove expect: not_convertible from its entry")
)

// useFolder is the hint for the names that other tools give to --output.
const useFolder = "convert and decode write into -o DIR"

// OtherTools has the hints for commands and flags of other tools.
var OtherTools = map[string]Hint{
	"token": row("--token", "set HF_TOKEN, or log in with hf auth login: a flag's value is visible to "+
		"other users"),
	"login":       row("--login", "log in with: hf auth login"),
	"dry-run":     row("--dry-run", "use the command plan: df11-convert plan SOURCE"),
	"version":     row("--version", "print the version with: df11-convert --version"),
	"output-dir":  row("--output-dir", useFolder),
	"local-dir":   row("--local-dir", useFolder),
	"cache-dir":   row("--cache-dir", "use --work-dir DIR for temporary files, and HF_HOME for the cache of hf"),
	"upload":      row("--upload", "use --push"),
	"upload-repo": row("--upload-repo", "use --push, and --repo-id ORG/NAME if the name matters"),
	"model":       row("--model", "write the model's name without a flag: df11-convert ORG/NAME"),
	"overwrite":   row("--overwrite", "use --force"),
	"base-model": row("--base-model", "use --original ORG/NAME if the folder is a copy of that repo; what it "+
		"was trained from is base_model in its README.md"),
	"device":  row("--device", "use --gpu auto, require, or off"),
	"threads": row("--threads", "use --workers N"),
}
