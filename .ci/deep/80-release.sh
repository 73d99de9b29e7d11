#!/usr/bin/env bash
# Builds a release of the committed state as the release workflow does, publishes nothing, and looks into what came out: names,
# versions, packages, wheels, SBOMs, the container image. Without a Docker engine, buildah of Debian builds and runs the image as
# root, on a base of Debian's packages. Needs Python and jq.
set -euo pipefail
cd "$(dirname "$0")/../.."
goreleaser=v2.16.0 # as in .github/workflows/release.yml
. .ci/lib.sh
PATH=$(dirname "$(tool github.com/goreleaser/goreleaser/v2 "$goreleaser")"):$PATH

without=publish image=ghcr.io/df11-convert/df11-convert
export IMAGES=$work/images
if ! docker info >/dev/null 2>&1; then
  PATH=$PWD/.ci/deep/release/bin:$PATH
  if ! { [ "$(id -u)" = 0 ] && { have buildah || debian buildah; } &&
    mkdir "$IMAGES" && docker base "$(sed -n 's/^ARG BASE=//p' packaging/Dockerfile)"; }; then
    skip 'the container image: Docker, or buildah with packages for its base, is missing here'
    without+=,docker image=
  fi
fi
have jq || debian jq
case $(uname -m) in aarch64) machine=arm64 runner=ARM64 ;; *) machine=amd64 runner=X64 ;; esac

[ -z "$(git status --porcelain)" ] || echo 'what is not committed is not part of this'
git clone -q . "$work/clone"
cd "$work/clone"
commit=$(git rev-parse HEAD)
grep -q "version: $goreleaser " .github/workflows/release.yml
goreleaser check -q
goreleaser release --snapshot --clean --skip="$without" --parallelism 2

version=$(python3 -c 'import json; print(json.load(open("dist/metadata.json"))["version"])')
echo "== version $version"
files=(df11-convert_{linux_{amd64,arm64}{,_nogpu},darwin_{amd64,arm64}}.tar.gz df11-convert_windows_amd64.zip
  df11-convert_linux_{amd64,arm64}.{deb,rpm})
for f in "${files[@]}"; do
  grep -q "  $f\$" dist/checksums.txt || fail "$f has no checksum"
done
[ "$(grep -c '\.cdx\.json$' dist/checksums.txt)" = 7 ] || fail "SBOMs: $(ls dist)"
[ "$(grep -c '\.whl$' dist/checksums.txt)" = 7 ] || fail "wheels: $(ls build/wheels)"
(cd dist && cp ../build/wheels/*.whl . && sha256sum --quiet -c checksums.txt)

echo '== every program says what it is'
for f in "dist/df11-convert_linux_$machine"{,_nogpu}.tar.gz; do
  mkdir -p "$work/tar" && tar -xzf "$f" -C "$work/tar"
  said=$("$work/tar/df11-convert" --version)
  [ "$said" = "df11-convert $version" ] || fail "$f says: $said"
done
echo '== an archive holds the program and what people read, nothing else; a wheel holds the licenses'
python3 - dist/*.{tar.gz,zip,whl} <<'END'
import glob, os, sys, tarfile, zipfile
texts = {f: open(f"{d}/{f}", "rb").read() for d, f in ((".", "LICENSE"), ("build", "THIRD_PARTY_NOTICES"))}
read = {*texts, "README.md", *(os.path.relpath(f, "build/manual") for f in glob.glob("build/manual/*/*"))}
for path in sys.argv[1:]:
    packed = tarfile.open(path) if path.endswith("gz") else zipfile.ZipFile(path)
    names = {*(packed.getnames() if path.endswith("gz") else packed.namelist())}
    if path.endswith("whl"):
        for f, text in texts.items():
            [there] = (n for n in names if n.endswith(f".dist-info/licenses/{f}"))
            assert packed.read(there) == text, path
    elif names ^ read not in ({"df11-convert"}, {"df11-convert.exe"}):
        sys.exit(f"{path} lacks or has {sorted(names ^ read)}")
END
echo '== what docs/install.md and the action ask for has these names'
while read -r name; do
  [ -s "dist/$name" ] || fail "docs/install.md: the release has no $name"
done < <(grep -oE 'releases/latest/download/[A-Za-z0-9._-]+' docs/install.md | sed 's,.*/,,')
grep -qF 'df11-convert_windows_amd64.zip' dist/scoop/df11-convert.json || fail 'the file for Scoop names no archive'
grep -rqF 'df11-convert_windows_amd64.zip' dist/winget || fail 'the files for winget name no archive'
mkdir -p "$work/www/me/fork/releases/download"
cp -r dist "$work/www/me/fork/releases/download/v$version"
serve_files "$work/www"
mkdir "$work/runner"
RUNNER_TEMP=$work/runner RUNNER_OS=Linux RUNNER_ARCH=$runner GITHUB_OUTPUT=$work/output GITHUB_SERVER_URL=$server ACTION_REPOSITORY=me/fork \
  INPUT_VERSION=$version .github/action/action.sh download
grep -qx false "$work/output" || fail 'the action would build the program'
cask=dist/homebrew/Casks/df11-convert.rb
for there in _darwin_ _linux_ quarantine; do
  grep -qF "$there" "$cask" || { cat "$cask"; fail "the cask lacks $there"; }
done
diff <(cd build/manual && printf '%s\n' man/*) <(sed -n 's/^ *manpage "\(.*\)"$/\1/p' "$cask" | LC_ALL=C sort) || fail 'the cask has other man pages than the archive'

echo '== the SBOMs list what the linker has put in, and keep to the schema'
for f in dist/*.cdx.json; do
  jq -r '.components[] | "======== " + if .name == "std" then "Go go" else .name + " " end + .version' "$f" | sort |
    comm -23 - <(grep '^======== ' build/THIRD_PARTY_NOTICES | sort) | grep . && fail "THIRD_PARTY_NOTICES lacks what $f lists"
  jq -e --arg commit "$commit" '.metadata.properties | any(.name == "vcs.revision" and .value == $commit)' "$f" >/dev/null ||
    fail "$f is of another commit"
done
sbom=dist/df11-convert_${version}_linux_amd64.cdx.json
hash=$(tar -xOf "dist/df11-convert_linux_amd64.tar.gz" df11-convert | sha256sum)
[ "$(jq -r '.metadata.component.hashes[0].content' "$sbom")" = "${hash%% *}" ] || fail "$sbom is of another program"
listed() { jq -r '.components[] | select(.name != "std") | "\(.name) \(.version) \(.properties[0].value)"' "$1" | sort; }
GOOS=linux GOARCH=amd64 go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Sum}}{{end}}{{end}}' ./cmd/df11-convert |
  sort -u | grep . | diff - <(listed "$sbom") || fail "$sbom lists other modules than the program imports"
if venv "$work/sbom" 'cyclonedx-python-lib[json-validation]==11.12.0'; then
  "$work/sbom/bin/python" - dist/*.cdx.json <<'END'
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
for path in sys.argv[1:]:
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(path).read()):
        sys.exit(f"{path}: {error}")
END
else
  skip 'the SBOMs were not compared with the schema: cyclonedx-python-lib is missing here'
fi

echo '== the packages hold program, man pages and completions'
if command -v dpkg-deb >/dev/null; then
  dpkg-deb -x "dist/df11-convert_linux_amd64.deb" "$work/deb"
  "$work/deb/usr/bin/df11-convert" --version
  for there in man/man1/df11-convert.1.gz bash-completion/completions/df11-convert zsh/site-functions/_df11-convert \
    doc/df11-convert/{copyright,THIRD_PARTY_NOTICES}; do
    [ -s "$work/deb/usr/share/$there" ] || fail "the package lacks $there"
  done
else
  skip 'looking into the .deb: there is no dpkg-deb'
fi

echo '== pip installs the wheel and it runs'
for tag in manylinux_2_17 musllinux_1_1; do
  wheel=$(echo build/wheels/*"-${tag}_$(uname -m).whl")
  python3 -m venv "$work/$tag"
  named=$work/$(basename "${wheel/musllinux_1_1/linux}") # a static program runs on any Linux; pip knows that this one is not musl
  cp "$wheel" "$named"
  "$work/$tag/bin/pip" install --quiet --disable-pip-version-check --no-index "$named"
  said=$("$work/$tag/bin/df11-convert" --version)
  [ "$said" = "df11-convert $version" ] || fail "$wheel says: $said"
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
if [ -n "$image" ]; then
  image=$image:$version-$machine
  docker image save "$image" >"$work/image.tar"
  size=$(wc -c <"$work/image.tar")
  echo "== the image, $size bytes: no root, no shell, a driver that is put into it is found"
  [ "$size" -lt 60000000 ] || fail 'the image is large'
  mkdir "$work/layers"
  tar -xf "$work/image.tar" -C "$work/layers"
  find "$work/layers" -type f -exec tar -tf {} \; 2>/dev/null >"$work/in-image" || true # not every file is a layer
  for there in LICENSE THIRD_PARTY_NOTICES; do
    grep -qx "usr/share/doc/df11-convert/$there" "$work/in-image" || fail "the image lacks $there"
  done
  docker image inspect "$image" >"$work/image.json"
  jq -e --arg commit "$commit" --arg version "$version" --arg machine "$machine" '.[0] | .Architecture == $machine and (.Config |
    (.User | IN("", "0", "root") | not) and .WorkingDir == "/home/nonroot" and .Entrypoint == ["/usr/bin/df11-convert"] and
    .Labels."org.opencontainers.image.revision" == $commit and .Labels."org.opencontainers.image.version" == $version and
    (.Env | any(startswith("SSL_CERT_FILE=")) and contains(["NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"])))' \
    "$work/image.json" >/dev/null || fail "the image is configured otherwise: $(cat "$work/image.json")"
  said=$(docker run --rm "$image" --version)
  [ "$said" = "df11-convert $version" ] || fail "the image says: $said"
  docker run --rm "$image" demo -o demo --quiet # in the home of its user
  install -d -o 1234 "$work/mine"
  docker run --rm -u 1234 -v "$work/mine:/home/nonroot" "$image" demo -o demo --quiet
  [ "$(stat -c %u "$work/mine/demo")" = 1234 ] || fail 'a user of a folder does not own what was made in it'
  if docker run --rm "$image" demo -o /demo --quiet 2>"$work/denied"; then fail 'the program in the image may write where root may'; fi
  grep -q 'permission denied' "$work/denied" || fail "$(cat "$work/denied")"
  # The container toolkit adds the driver as one file, in the folder of the C library; this one decodes on the CPU.
  if have gcc || debian gcc libc6-dev; then
    gcc -shared -fPIC -O2 -pthread '-DDIR="/tmp"' -o "$work/libcuda.so.1" verify/testdata/stub/stub.c
    if docker run --rm "$image" demo --gpu require --quiet; then fail 'a driver was found where none is'; fi
    docker run --rm -v "$work/libcuda.so.1:/usr/lib/$(gcc -print-multiarch)/libcuda.so.1:ro" "$image" demo --gpu require
  else
    skip 'a driver in the image: there is no gcc'
  fi
fi
echo 'release: everything that can be built here was'
