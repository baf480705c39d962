//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// withoutLibrary marks the process that TestStartWithoutLibrary starts.
const withoutLibrary = "DAHL_TEST_WITHOUT_LIBRARY"

// A program with CUDA starts on a machine without the driver library, and says so when a
// device is asked for. The dynamic linker reads its search path when a process starts, so
// this takes another one.
func TestStartWithoutLibrary(t *testing.T) {
	if os.Getenv(withoutLibrary) != "" {
		_, err := Open(0)
		fmt.Println("opened:", errors.Is(err, ErrNoDevice), err)
		return
	}
	c := exec.Command(os.Args[0], "-test.run=^TestStartWithoutLibrary$", "-test.v")
	c.Env = append(os.Environ(), withoutLibrary+"=1", "LD_LIBRARY_PATH=")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "opened: true no CUDA device: there is no driver library, libcuda.so.1") {
		if strings.Contains(string(out), "opened: false <nil>") {
			t.Skip("this machine has a driver")
		}
		t.Errorf("got %s", out)
	}
}

// No device is no error of the driver: the library is there and counts none.
func TestStartWithoutDevice(t *testing.T) {
	if os.Getenv(withoutLibrary) != "" {
		_, err := Count()
		fmt.Println("counted:", errors.Is(err, ErrNoDevice), err)
		return
	}
	emulated(t, open(t))
	c := exec.Command(os.Args[0], "-test.run=^TestStartWithoutDevice$", "-test.v")
	c.Env = append(os.Environ(), withoutLibrary+"=1", "DAHL_TESTDRIVER_DEVICES=0")
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "counted: true no CUDA device") {
		t.Errorf("%v\n%s", err, out)
	}
}
