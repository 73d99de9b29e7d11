# shellcheck shell=bash
# What the scripts of the engines share: the comparison with a single run. Sourced from the repo's root.
. .ci/lib.sh

converter
export PATH=$work/bin:$PATH HF_HOME=$work/home HF_TOKEN=hf_rehearsal

source=org/tiny
target=tester/tiny-DF11

# single: converts the source in one run on a hub of its own.
single() {
  start_hub single -model "$source"
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
