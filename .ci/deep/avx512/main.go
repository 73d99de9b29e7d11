// Command avx512 packs test binaries and their data into an initramfs, and, started as the first
// process of a Linux that boots from it, runs them and switches the machine off. It judges no test:
// the reader of the console does.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// script is the file with the commands for the first process, one per line: a folder,
// variables as NAME=VALUE, a program, its arguments.
const script = "run"

func main() {
	if os.Getpid() == 1 {
		boot()
		return
	}
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: avx512 ROOT INITRAMFS")
		os.Exit(2)
	}
	if err := pack(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// boot is the life of the first process.
func boot() {
	for _, m := range [][2]string{{"proc", "/proc"}, {"tmpfs", "/tmp"}, {"devtmpfs", "/dev"}} {
		if err := syscall.Mount(m[0], m[1], m[0], 0, ""); err != nil {
			fmt.Println("mount", m[1], err)
		}
	}
	list, err := os.ReadFile("/" + script)
	if err != nil {
		fmt.Println(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(list))
	for lines.Scan() {
		run(strings.Fields(lines.Text()))
	}
	fmt.Println("all run")
	// What the serial line still holds would be lost.
	_ = unix.IoctlSetInt(1, unix.TCSBRK, 1)
	time.Sleep(100 * time.Millisecond)
	_ = syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF)
}

func run(line []string) {
	start := time.Now()
	dir, line := line[0], line[1:]
	env := os.Environ()
	for strings.Contains(line[0], "=") {
		env, line = append(env, line[0]), line[1:]
	}
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir, cmd.Env = dir, env
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
	err := cmd.Run()
	fmt.Printf("ran %s: %v after %.1f s of the machine's time\n", path.Base(line[0]), err,
		time.Since(start).Seconds())
}

// pack writes the folder root as a cpio archive of the kernel's format, with the console that the
// kernel opens for the first process.
func pack(root, file string) error {
	var a archive
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == root {
			return err
		}
		name, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		if d.IsDir() {
			a.add(name, syscall.S_IFDIR|0o755, 0, nil)
			return nil
		}
		data, err := os.ReadFile(p)
		a.add(name, syscall.S_IFREG|0o755, 0, data)
		return err
	})
	if err != nil {
		return err
	}
	for _, dir := range []string{"proc", "tmp", "dev"} {
		a.add(dir, syscall.S_IFDIR|0o755, 0, nil)
	}
	a.add("dev/console", syscall.S_IFCHR|0o600, 5<<8|1, nil)
	a.add("TRAILER!!!", 0, 0, nil)
	return os.WriteFile(file, a.buf.Bytes(), 0o600)
}

// archive is a cpio archive in the making.
type archive struct {
	buf   bytes.Buffer
	inode int
}

// add appends a file; device is its number with the major one in bits 8 to 15.
func (a *archive) add(name string, mode uint32, device int, data []byte) {
	a.inode++
	a.buf.WriteString("070701") // new ASCII format
	for _, v := range []int{a.inode, int(mode), 0, 0, 1, 0, len(data), 0, 0, device >> 8,
		device & 0xff, len(name) + 1, 0} {
		fmt.Fprintf(&a.buf, "%08X", v)
	}
	a.buf.WriteString(name)
	a.buf.WriteByte(0)
	a.align()
	a.buf.Write(data)
	a.align()
}

func (a *archive) align() {
	for a.buf.Len()%4 != 0 {
		a.buf.WriteByte(0)
	}
}
