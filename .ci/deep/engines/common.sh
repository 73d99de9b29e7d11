# shellcheck shell=bash
# What the scripts of the engines share: programs in $work/bin, hubs, and the comparison with a single run. Sourced from the
# repo's root. $work goes when the script ends, and every process whose id is in pids.
work=$(mktemp -d)
pids=()
stop() {
	local pid
	for pid in "${pids[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
	for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
	rm -rf "$work"
}
trap stop EXIT

mkdir "$work/bin" "$work/home"
cp "${DF11_CONVERT:-/nonexistent}" "$work/bin/df11-convert" 2>/dev/null || go build -o "$work/bin/df11-convert" ./cmd/df11-convert
go build -o "$work/bin/hubd" ./internal/hubtest/hubd
export PATH=$work/bin:$PATH HF_HOME=$work/home HF_TOKEN=hf_rehearsal

source=org/tiny
target=tester/tiny-DF11

# serve NAME FLAGS…: starts a hub whose repos lie in $work/NAME, and points HF_ENDPOINT at it. Each has the same source.
serve() {
	local name=$1
	shift
	mkdir "$work/$name"
	hubd -data "$work/$name" -model "$source" "$@" >"$work/$name.out" 2>"$work/$name.err" &
	pids+=($!)
	until HF_ENDPOINT=$(sed -n 's/^READY //p' "$work/$name.out") && [ -n "$HF_ENDPOINT" ]; do
		kill -0 $! || { cat "$work/$name.err"; exit 1; }
		sleep 0.1
	done
	export HF_ENDPOINT
}

# single: converts the source in one run on a hub of its own.
single() {
	serve single
	df11-convert "$source" --push --repo-id "$target" --quiet
}

# same NAME: the repo on the hub NAME is that of the single run, byte for byte, but for the word in the manifest that says
# how each source file was checked (docs/manifest.md).
same() {
	local from to=$work/$1/$target manifest=df11-manifest.json
	from=$work/single/$target
	local files
	files=$(grep -c '"integrity": "streamed"' "$from/$manifest")
	[ "$(grep -c '"integrity": "proof"' "$to/$manifest")" = "$files" ] || { echo "not all $files source files were verified by their rebuilt bytes"; exit 1; }
	sed 's/"integrity": "proof"/"integrity": "streamed"/' "$to/$manifest" | cmp - "$from/$manifest"
	diff -r --exclude "$manifest" "$from" "$to"
	echo "$(find "$to" -type f | wc -l) files, each with the bytes that a single run gives, but for $files words in the manifest"
}
