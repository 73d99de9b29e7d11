package kernel

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// machineTargets assembles a PTX text for the GPUs that ptxas knows, and calls run with the machine code of each, and its
// listing: with DF11_DEEP of all, else of one. DF11_PTXAS and DF11_NVDISASM name the programs; .ci/deep/30-kernel.sh gets them.
func machineTargets(t *testing.T, ptx string, run func(t *testing.T, m *module, listing string)) {
	t.Helper()
	assembler, disassembler := os.Getenv("DF11_PTXAS"), os.Getenv("DF11_NVDISASM")
	if assembler == "" || disassembler == "" {
		t.Skip("NOT TESTED: machine code. DF11_PTXAS and DF11_NVDISASM do not name NVIDIA's ptxas and nvdisasm")
	}
	help, err := exec.CommandContext(t.Context(), assembler, "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	var least int
	if target := regexp.MustCompile(`(?m)^\.target\s+sm_(\d+)`).FindStringSubmatch(ptx); target != nil {
		least, _ = strconv.Atoi(target[1])
	}
	targets := regexp.MustCompile(`'sm_\d+'`).FindAllString(string(help), -1)
	targets = slices.DeleteFunc(targets, func(target string) bool {
		version, err := strconv.Atoi(strings.Trim(target, "'sm_"))
		return err != nil || version < least || os.Getenv("DF11_DEEP") == "" && version != 90
	})
	if len(targets) == 0 {
		t.Fatalf("%s knows no target", assembler)
	}
	slices.Sort(targets)
	for _, quoted := range slices.Compact(targets) {
		target := strings.Trim(quoted, "'")
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			source, object := filepath.Join(t.TempDir(), "kernel.ptx"), filepath.Join(t.TempDir(), "kernel.cubin")
			if err := os.WriteFile(source, []byte(ptx), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), assembler, "-v", "-arch", target, "-o", object, source).CombinedOutput()
			if err != nil {
				t.Fatalf("ptxas: %v\n%s", err, out)
			}
			mustFit(t, target, string(out))
			listing, err := exec.CommandContext(t.Context(), disassembler, object).Output()
			if e := (*exec.ExitError)(nil); errors.As(err, &e) && strings.Contains(string(e.Stderr), "deprecated") {
				t.Skipf("NOT TESTED: nvdisasm is too new for %s: %s", target, e.Stderr)
			} else if err != nil {
				t.Fatal("nvdisasm:", err)
			}
			m, err := parseMachine(string(listing))
			if err != nil {
				t.Fatal(err)
			}
			run(t, m, string(listing))
		})
	}
}

// registersFor is how many registers a thread of decode_tiles may have, for as many blocks of 512 threads as a multiprocessor of
// 65536 registers has threads for: 4 on A100, H100 and B200, 3 on RTX cards, 2 on T4.
var registersFor = map[string]int{"sm_80": 32, "sm_90": 32, "sm_100": 32, "sm_86": 40, "sm_89": 40, "sm_120": 40, "sm_75": 64}

// mustFit reads what ptxas tells of registers: none spill, and decode_tiles does not have too many.
func mustFit(t *testing.T, target, told string) {
	t.Helper()
	for _, spill := range regexp.MustCompile(`(\d+) bytes spill`).FindAllStringSubmatch(told, -1) {
		if spill[1] != "0" {
			t.Errorf("registers spill:\n%s", told)
		}
	}
	_, told, ours := strings.Cut(told, "'"+DecodeTiles+"'")
	most, limited := registersFor[target]
	if !ours || !limited {
		return
	}
	used := regexp.MustCompile(`Used (\d+) registers`).FindStringSubmatch(told)
	if used == nil {
		t.Fatalf("ptxas tells of no registers:\n%s", told)
	}
	if n, err := strconv.Atoi(used[1]); err != nil || n > most {
		t.Errorf("%s uses %s registers; with %d more blocks would fit", DecodeTiles, used[1], most)
	}
}

// TestMachineGoldenUnits runs the machine code of our kernel and of the official one on the golden units.
func TestMachineGoldenUnits(t *testing.T) {
	units := goldenUnits(t)
	t.Run("ours", func(t *testing.T) {
		machineTargets(t, PTX(), func(t *testing.T, m *module, _ string) {
			for i, u := range units {
				mustDecodeOwn(t, m, u, variant{seed: uint64(i), skew: i % 3 * 5})
			}
		})
	})
	t.Run("official", func(t *testing.T) {
		machineTargets(t, officialPTX(t), func(t *testing.T, m *module, _ string) {
			for i, u := range units {
				mustDecodeOfficial(t, entry(t, m, Decode), u, uint64(i))
			}
		})
	})
}

// TestMachineCost bounds the lane slots and the wavefronts of shared memory for a weight, on weights like those of models.
func TestMachineCost(t *testing.T) {
	units := goldenUnits(t)
	largest := units[slices.IndexFunc(units, func(u *unit) bool { return u.name == "unit_llm_block" })] // of weights like a model's
	machineTargets(t, PTX(), func(t *testing.T, m *module, _ string) {
		for _, c := range []struct {
			unit              *unit
			slots, wavefronts float64
		}{
			{largest, 29, 2.8},
			{normalUnit(t, 400_000), 27, 2.8},
			{mixedUnit(t, 400_000), 34, 2.8},
		} {
			_, stats, err := decodeTiles(m, c.unit, variant{}, c.unit.nChunks())
			if err != nil {
				t.Fatal(err)
			}
			n := float64(c.unit.nElems()) / 32
			slots, wavefronts := float64(stats.warpInstructions)/n, float64(stats.wavefronts)/n
			t.Logf("%s: %.2f lane slots a weight, %.2f wavefronts of shared memory × 32, %.1f barriers a tile", c.unit.name, slots,
				wavefronts, float64(stats.barriers)/float64(c.unit.nChunks()))
			if slots > c.slots || wavefronts > c.wavefronts {
				t.Errorf("%s: more than %.0f lane slots or %.1f wavefronts", c.unit.name, c.slots, c.wavefronts)
			}
		}
	})
}

func TestMachineCorruptUnits(t *testing.T) {
	machineTargets(t, PTX(), func(t *testing.T, m *module, _ string) {
		for i := range 20 {
			mustEnd(t, m, uint64(i))
		}
	})
}

// TestMachineMutants demands that the emulator sees when a barrier is missing, and when a shuffle reaches one lane too far.
func TestMachineMutants(t *testing.T) {
	u := normalUnit(t, 12_000)
	machineTargets(t, PTX(), func(t *testing.T, m *module, listing string) {
		mustMissBarriers(t, m)
		_, code, _ := strings.Cut(listing, "\t.section\t.text."+DecodeTiles)
		code, _, _ = strings.Cut(code, "\t.section\t")
		shuffles := regexp.MustCompile(`(SHFL\.\w+ \w+, \w+, \w+, 0x)(\w+)`).FindAllStringSubmatchIndex(code, -1)
		for _, at := range shuffles {
			distance, _ := strconv.ParseInt(code[at[4]:at[5]], 16, 64)
			mutant := code[:at[4]] + strconv.FormatInt(distance+1, 16) + code[at[5]:]
			m, err := parseMachine(strings.Replace(listing, code, mutant, 1))
			if err != nil {
				t.Fatal(err)
			}
			if out, _, err := decodeTiles(m, u, variant{}, 2); err == nil && bytes.Equal(out, u.bf) {
				t.Errorf("nobody notices %s%x", code[at[0]:at[4]], distance+1)
			}
		}
		if len(shuffles) < 9 {
			t.Errorf("%d shuffles", len(shuffles))
		}
	})
}
