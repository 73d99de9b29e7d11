#!/usr/bin/env bash
# Runs the tests of the AVX-512 loops in an emulator, for machines without these instructions: a Debian kernel boots in
# Bochs, which knows the instructions of Ice Lake, and its first process runs the test binaries. That proves what the
# loops compute, not how fast they are. Needs apt, for bochs, isolinux, genisoimage and a kernel; takes 4 minutes.
# DF11_AVX512_KEEP=1 runs the emulator although the machine itself has the instructions.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh

if grep -qw avx512_vbmi2 /proc/cpuinfo && [ -z "${DF11_AVX512_KEEP-}" ]; then
  echo 'this machine has AVX-512: the ordinary tests ran its loops'
  exit 0
fi

cache=$CI_CACHE/bochs

# Packages are unpacked, not installed, where that is enough: nothing here should change how this machine boots.
fetch() {
  debian bochs bochs-term bochsbios vgabios genisoimage || return 1
  local kernel
  kernel=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^  Depends: \(linux-image-.*\)/\1/p' | head -n 1)
  rm -rf "$cache.part"
  mkdir -p "$cache.part"
  (
    cd "$cache.part"
    apt-get download -q "$kernel" isolinux syslinux-common >/dev/null 2>&1
    for package in *.deb; do dpkg-deb -x "$package" .; done
    rm ./*.deb
    cp boot/vmlinuz-* vmlinuz
    rm -rf lib boot
  )
  [ -f "$cache.part/vmlinuz" ] && [ -f "$cache.part/usr/lib/ISOLINUX/isolinux.bin" ] || return 1
  rm -rf "$cache"
  mv "$cache.part" "$cache"
}
if [ ! -f "$cache/vmlinuz" ] || ! have bochs genisoimage; then
  echo 'install bochs and a kernel'
  fetch || skip_rest 'bochs or a kernel for it are missing here: the AVX-512 loops did not run'
fi

# The machine's files: the first process, what it runs, and the golden vectors.
root=$work/root
mkdir -p "$root/encoder" "$root/testdata" "$work/iso"
go build -o "$root/init" ./.ci/deep/avx512
go test -c -o "$root/encoder/encoder.test" ./encoder
cp -r testdata/golden "$root/testdata/golden"
tests='^(TestCount|TestAppend|TestPaces|TestGoldenUnits|TestGoldenStreams|TestBlocksAndWorkers|TestChangedSource|TestLoopsStayInTheirMemory|FuzzEncode)$'
# Go's garbage collector uses GF2P8AFFINEQB where there is AVX-512 with VL, and Bochs 2.7 complements its result.
echo "/encoder DF11_TEST_VARIANT=avx512 GODEBUG=cpu.avx512vl=off /encoder/encoder.test -test.v -test.short -test.run $tests" >"$root/run"
"$root/init" "$root" "$work/iso/initrd"

# Bochs 2.7 reports contradictory sizes for the compact XSAVE format, and fast short moves but slow long ones. The
# kernel boots without these features.
cat >"$work/iso/isolinux.cfg" <<'CONFIG'
default linux
prompt 0
label linux
 kernel vmlinuz
 append initrd=initrd console=ttyS0 quiet mitigations=off tsc=reliable panic=-1 clearcpuid=pku,xsaves,xsavec,fsrm
CONFIG
cp "$cache/vmlinuz" "$cache/usr/lib/ISOLINUX/isolinux.bin" "$cache/usr/lib/syslinux/modules/bios/ldlinux.c32" "$work/iso/"
genisoimage -quiet -o "$work/boot.iso" -b isolinux.bin -c boot.cat -no-emul-boot -boot-load-size 4 -boot-info-table "$work/iso"

cat >"$work/bochsrc" <<CONFIG
display_library: rfb, options="timeout=0"
config_interface: textconfig
cpu: model=corei7_icelake_u, count=1, ips=50000000, reset_on_triple_fault=0
memory: guest=512, host=512
romimage: file=/usr/share/bochs/BIOS-bochs-latest, options=fastboot
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
ata0-master: type=cdrom, path=$work/boot.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$work/console
log: $work/bochs.log
panic: action=fatal
clock: sync=none
CONFIG
echo continue >"$work/debugger"
timeout -k 10 900 bochs -q -f "$work/bochsrc" -rc "$work/debugger" >"$work/bochs.out" 2>&1 </dev/null &
pids[$!]=$!
wait $! || true # it also ends with an error when the machine switches itself off
unset "pids[$!]"

if ! grep -q '^all run' "$work/console"; then
  tail -n 20 "$work/bochs.log"
  cat "$work/console" || true
  echo 'the emulated machine did not come to its end'
  exit 1
fi
tr -d '\r' <"$work/console" | sed -n '/^=== RUN/d; /^\(---\|    \|PASS\|FAIL\|ran \|panic\)/p'
tr -d '\r' <"$work/console" | grep -q '^ran encoder.test: <nil>' || { cat "$work/console"; exit 1; }
! grep -Eq '^(FAIL|--- FAIL|--- SKIP|testing: warning: no tests)' "$work/console"
