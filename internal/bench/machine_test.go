package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"time"
)

// machine says on what and when the rows were measured.
func machine() string {
	return fmt.Sprintf("Measured on %s: %d cores of %s, %s/%s, %s, Redis %s, Postgres %s.",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), cpu(), runtime.GOOS, runtime.GOARCH, runtime.Version(),
		version("redis-server"), version(postgres()))
}

func cpu() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	if m := regexp.MustCompile(`(?m)^model name\s*:\s*(.+)$`).FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return "an unknown processor"
}

// postgres is the newest server that Debian installed, or the one on the path.
func postgres() string {
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres"); len(found) > 0 {
		slices.Sort(found)
		return found[len(found)-1]
	}
	return "postgres"
}

func version(program string) string {
	out, err := exec.Command(program, "--version").Output()
	if m := regexp.MustCompile(`\d+(\.\d+)+`).Find(out); err == nil && m != nil {
		return string(m)
	}
	return "not installed"
}
