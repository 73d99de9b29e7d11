#!/usr/bin/env bash
# Builds a release of the committed state as the release workflow does, publishes nothing, and looks into what came out: names,
# versions, packages, wheels. Here and not there: the container image needs a Docker engine, SBOMs need syft.
set -euo pipefail
cd "$(dirname "$0")/../.."
goreleaser=v2.16.0 # as in .github/workflows/release.yml
. .ci/lib.sh
PATH=$(dirname "$(tool github.com/goreleaser/goreleaser/v2 "$goreleaser")"):$PATH

without=publish
docker info >/dev/null 2>&1 || { skip 'the container image: there is no Docker engine'; without+=,docker; }
command -v syft >/dev/null || { skip 'SBOMs: there is no syft'; without+=,sbom; }

[ -z "$(git status --porcelain)" ] || echo 'what is not committed is not part of this'
git clone -q . "$work/clone"
cd "$work/clone"
commit=$(git rev-parse HEAD)
grep -q "version: $goreleaser " .github/workflows/release.yml
goreleaser check -q
goreleaser release --snapshot --clean --skip="$without" --parallelism 2

version=$(python3 -c 'import json; print(json.load(open("dist/metadata.json"))["version"])')
echo "== version $version"
files=(df11-convert_"$version"_{linux_{amd64,arm64}{,_nogpu},darwin_{amd64,arm64}}.tar.gz "df11-convert_${version}_windows_amd64.zip"
  df11-convert_"$version"_linux_{amd64,arm64}.{deb,rpm})
for f in "${files[@]}"; do
  grep -q "  $f\$" dist/checksums.txt || fail "$f has no checksum"
done
[ "$(grep -c '\.whl$' dist/checksums.txt)" = 7 ] || fail "wheels: $(ls build/wheels)"
(cd dist && cp ../build/wheels/*.whl . && sha256sum --quiet -c checksums.txt)

echo '== every program says what it is'
for f in "dist/df11-convert_${version}_linux_amd64"{,_nogpu}.tar.gz; do
  mkdir -p "$work/tar" && tar -xzf "$f" -C "$work/tar"
  said=$("$work/tar/df11-convert" version)
  [ "$said" = "df11-convert $version (commit $commit)" ] || fail "$f says: $said"
  for there in man/df11-convert-verify.1.gz completions/_df11-convert LICENSE docs/format.md; do
    [ -s "$work/tar/$there" ] || fail "$f lacks $there"
  done
done
cask=dist/homebrew/Casks/df11-convert.rb
for there in _darwin_ _linux_ 'manpage "man/df11-convert.1.gz"' quarantine; do
  grep -qF "$there" "$cask" || { cat "$cask"; fail "the cask lacks $there"; }
done

echo '== the packages hold program, man pages and completions'
if command -v dpkg-deb >/dev/null; then
  dpkg-deb -x "dist/df11-convert_${version}_linux_amd64.deb" "$work/deb"
  "$work/deb/usr/bin/df11-convert" version --quiet
  for there in man/man1/df11-convert.1.gz bash-completion/completions/df11-convert zsh/site-functions/_df11-convert; do
    [ -s "$work/deb/usr/share/$there" ] || fail "the package lacks $there"
  done
else
  skip 'looking into the .deb: there is no dpkg-deb'
fi

echo '== pip installs the wheel and it runs'
machine=$(uname -m)
for tag in manylinux_2_17 musllinux_1_1; do
  wheel=$(echo build/wheels/*"-${tag}_$machine.whl")
  python3 -m venv "$work/$tag"
  named=$work/$(basename "${wheel/musllinux_1_1/linux}") # a static program runs on any Linux; pip knows that this one is not musl
  cp "$wheel" "$named"
  "$work/$tag/bin/pip" install --quiet --disable-pip-version-check --no-index "$named"
  said=$("$work/$tag/bin/df11-convert" version)
  [ "$said" = "df11-convert $version (commit $commit)" ] || fail "$wheel says: $said"
  "$work/$tag/bin/df11-convert" demo -o "$work/$tag/demo" --quiet
done

echo '== the same inputs give the same wheel'
before=$(sha256sum "build/wheels/"*manylinux_2_17_x86_64.whl | cut -d' ' -f1)
when=$(git log -1 --format=%ct)
program=$(python3 - <<'END'
import json
for a in json.load(open("dist/artifacts.json")):
    if a["type"] == "Binary" and (a["goos"], a["goarch"], a["extra"]["ID"]) == ("linux", "amd64", "default"):
        print(a["path"])
END
)
SOURCE_DATE_EPOCH=$when python3 packaging/wheel/build.py --binary "$program" --tag manylinux_2_17_x86_64 --version "$version" --out "$work/again" >/dev/null
[ "$before" = "$(sha256sum "$work"/again/*.whl | cut -d' ' -f1)" ] || fail 'two wheels of one program differ'
echo 'release: everything that can be built here was'
