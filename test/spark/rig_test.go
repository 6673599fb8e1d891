// SPDX-License-Identifier: Apache-2.0

//go:build spark && linux

package spark_test

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/function/pipeline/pods"
	"github.com/capstan-dev/capstan/test/container"
	"github.com/capstan-dev/capstan/test/output"
)

// asPod makes this program the first process of a pod, which it names as JSON.
const asPod = "CAPSTAN_SPARK_POD"

// Folders of all pods: one that they share, and Spark.
const (
	shared   = "/capstan/shared"
	sparkDir = "/capstan/spark"
)

// companion is the program as it is built for its image.
var companion string

func TestMain(m *testing.M) {
	if raw := os.Getenv(asPod); raw != "" {
		fmt.Fprintln(os.Stderr, become(raw))
		os.Exit(1)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "capstan-spark-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	companion = filepath.Join(dir, "companion")
	build := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-buildvcs=false", "-o", companion, "../../images/companion")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "cannot build the companion: %v: %s\n", err, out)
		return 1
	}
	return m.Run()
}

// A pod as a kubelet would make it: namespaces, a name, a folder of its own, and the machine's files below a layer in memory.
type pod struct {
	Index   int    `json:"index"`
	Host    string `json:"host"`
	Network string `json:"network"`
	Hosts   string `json:"hosts"`
	// Scratch is an empty folder for the layer, Shared the folder of all pods.
	Scratch string   `json:"scratch"`
	Shared  string   `json:"shared"`
	Home    string   `json:"home"`
	Program string   `json:"program"`
	Plan    []byte   `json:"plan"`
	Args    []string `json:"args"`

	cmd  *exec.Cmd
	log  *output.Buffer
	done chan struct{}
	code int
}

// become the pod's first process. It returns only with an error.
func become(raw string) error {
	var p pod
	if err := json.Unmarshal([]byte(raw), &p); err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := errors.Join(container.EnterNetwork(p.Network), unix.Sethostname([]byte(p.Host)), p.assemble()); err != nil {
		return err
	}
	env := []string{
		"PATH=" + os.Getenv("PATH"), "JAVA_HOME=" + os.Getenv("JAVA_HOME"), "HOME=/tmp", "LANG=C.UTF-8", "CAPSTAN_JOB=" + strings.TrimSuffix(p.Host, "-"+strconv.Itoa(p.Index)),
		"JOB_COMPLETION_INDEX=" + strconv.Itoa(p.Index), "TERMINATION_LOG=" + p.termination(),
		// What Java takes by itself below the memory limit of these pods. It sees that of a container, and here the whole machine.
		"JAVA_TOOL_OPTIONS=-XX:+UseSerialGC -XX:MaxRAM=" + strconv.Itoa(pods.SparkMemory),
	}
	command := filepath.Join(runner.BinaryDir, filepath.Base(p.Program))
	return syscall.Exec(command, append([]string{command}, p.Args...), env)
}

// termination is the file with the last words of the pod.
func (p *pod) termination() string { return filepath.Join(shared, p.Host+".termination") }

func (p *pod) assemble() error {
	root := filepath.Join(p.Scratch, "root")
	err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("tmpfs", p.Scratch, "tmpfs", 0, "mode=0755"))
	for _, dir := range []string{"root", "upper", "work"} {
		err = errors.Join(err, os.Mkdir(filepath.Join(p.Scratch, dir), 0o755))
	}
	layers := fmt.Sprintf("lowerdir=/,upperdir=%[1]s/upper,workdir=%[1]s/work", p.Scratch)
	if err := errors.Join(err, unix.Mount("overlay", root, "overlay", 0, layers)); err != nil {
		return fmt.Errorf("cannot mount the root: %w", err)
	}
	for _, at := range []struct{ to, from, kind string }{
		{"proc", "proc", "proc"},
		{"dev", "/dev", ""},
		{"tmp", "tmpfs", "tmpfs"},
		{runner.ScratchDir, "tmpfs", "tmpfs"},
		{shared, p.Shared, ""},
		{sparkDir, p.Home, ""},
		{runner.BinaryDir, filepath.Dir(p.Program), ""},
	} {
		to, flags := filepath.Join(root, at.to), uintptr(0)
		if at.kind == "" {
			flags = unix.MS_BIND | unix.MS_REC
		}
		if err := errors.Join(os.MkdirAll(to, 0o755), unix.Mount(at.from, to, at.kind, flags, "")); err != nil {
			return fmt.Errorf("cannot mount %s: %w", at.to, err)
		}
	}
	return errors.Join(
		os.WriteFile(filepath.Join(root, "etc/hosts"), []byte(p.Hosts), 0o600),
		os.WriteFile(filepath.Join(root, runner.ScratchDir, "plan.json"), p.Plan, 0o600),
		unix.Chroot(root), os.Chdir("/"))
}

// An application is a Job of Spark whose pods are on a network of their own.
type application struct {
	t      *testing.T
	home   string
	job    string
	plan   runner.Plan
	args   []string
	shared string
	hosts  string
	// pods by index: the driver, and the workers.
	pods []*pod
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("cannot run ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// network of a namespace.
func network(job string, name any) string {
	return fmt.Sprintf("capstan-spark-%d-%s-%v", os.Getpid(), job, name)
}

// prepare the network of an application with so many workers, and a folder that all its pods see.
func prepare(t *testing.T, workers int, job, home, folder string, plan runner.Plan, args ...string) *application {
	t.Helper()
	a := &application{t: t, home: home, job: job, plan: plan, args: args, shared: folder, pods: make([]*pod, 1+workers)}
	sw := network(job, "switch")
	t.Cleanup(func() {
		for i, p := range a.pods {
			if p != nil {
				p.kill()
			}
			_ = exec.Command("ip", "netns", "delete", network(job, i)).Run()
		}
		_ = exec.Command("ip", "netns", "delete", sw).Run()
	})
	ip(t, "netns", "add", sw)
	ip(t, "-n", sw, "link", "add", "bridge", "type", "bridge")
	ip(t, "-n", sw, "link", "set", "bridge", "up")
	a.hosts = "127.0.0.1 localhost\n"
	for i := range a.pods {
		ns := network(job, i)
		ip(t, "netns", "add", ns)
		port := fmt.Sprintf("port%d", i)
		ip(t, "-n", ns, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", sw)
		ip(t, "-n", sw, "link", "set", port, "master", "bridge", "up")
		ip(t, "-n", ns, "link", "set", "lo", "up")
		ip(t, "-n", ns, "link", "set", "eth0", "up")
		ip(t, "-n", ns, "address", "add", fmt.Sprintf("10.213.1.%d/24", i+1), "dev", "eth0")
		a.hosts += fmt.Sprintf("10.213.1.%d %s-%d.%s %[2]s-%[3]d\n", i+1, job, i, plan.Domain)
	}
	return a
}

// submit the application: every pod begins at once, as in a Job.
func (a *application) submit() {
	a.t.Helper()
	for i := range a.pods {
		a.start(i)
	}
}

// start the pod of an index, or the one that takes its place.
func (a *application) start(i int) {
	a.t.Helper()
	raw, err := json.Marshal(a.plan)
	if err != nil {
		a.t.Fatal(err)
	}
	p := &pod{
		Index: i, Host: fmt.Sprintf("%s-%d", a.job, i), Network: "/run/netns/" + network(a.job, i), Hosts: a.hosts,
		Scratch: a.t.TempDir(), Shared: a.shared, Home: a.home, Program: companion, Plan: raw, log: &output.Buffer{}, done: make(chan struct{}),
		Args: append([]string{"run", "--plan=" + runner.ScratchDir + "/plan.json", "--"}, a.args...),
	}
	spec, err := json.Marshal(p)
	if err != nil {
		a.t.Fatal(err)
	}
	// A kubelet makes it, and the companion none.
	if err := os.WriteFile(filepath.Join(a.shared, p.Host+".termination"), nil, 0o600); err != nil {
		a.t.Fatal(err)
	}
	p.cmd = exec.CommandContext(context.WithoutCancel(a.t.Context()), "/proc/self/exe")
	p.cmd.Env = append(os.Environ(), asPod+"="+string(spec))
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		a.t.Fatalf("cannot start a pod: %v", err)
	}
	a.pods[i] = p
	go func() {
		_ = p.cmd.Wait()
		p.code = p.cmd.ProcessState.ExitCode()
		close(p.done)
	}()
}

// kill the pod: everything in it ends at once.
func (p *pod) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// ends waits until the pod has ended and returns its exit code.
func (a *application) ends(i int, within time.Duration) int {
	a.t.Helper()
	select {
	case <-a.pods[i].done:
		return a.pods[i].code
	case <-time.After(within):
		a.fatalf("pod %d does not end within %s", i, within)
		return -1
	}
}

// terminate a pod as a kubelet does.
func (a *application) terminate(i int, within time.Duration) int {
	a.t.Helper()
	_ = a.pods[i].cmd.Process.Signal(syscall.SIGTERM)
	return a.ends(i, within)
}

// fatalf fails the test with the ends of all logs.
func (a *application) fatalf(format string, args ...any) {
	a.t.Helper()
	for i, p := range a.pods {
		log := p.log.String()
		s, err := a.state(i)
		var f runner.Failure
		if s.LastFailure != nil {
			f = *s.LastFailure
		}
		a.t.Logf("pod %d is in state %+v with failure %+v, %v; its log ends:\n%s", i, s, f, err, log[max(0, len(log)-6000):])
	}
	a.t.Fatalf(format, args...)
}

// until a state is reached.
func (a *application) until(what string, within time.Duration, reached func() bool) {
	a.t.Helper()
	for end := time.Now().Add(within); !reached(); time.Sleep(50 * time.Millisecond) {
		select {
		case <-a.pods[0].done:
			if !reached() {
				a.fatalf("the pod of the driver ended before this: %s", what)
			}
			return
		default:
		}
		if time.Now().After(end) {
			a.fatalf("not within %s: %s", within, what)
		}
	}
}

// state that a pod reports at its port. The thread must not end: pods that it started would end with it.
func (a *application) state(i int) (runner.State, error) {
	runtime.LockOSThread()
	own := fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid())
	back, err := os.Open(own)
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(unix.Setns(int(back.Fd()), unix.CLONE_NEWNET), back.Close()); err != nil {
			a.t.Fatalf("cannot return to the network of this test: %v", err)
		}
		runtime.UnlockOSThread()
	}()
	if err := container.EnterNetwork(a.pods[i].Network); err != nil {
		return runner.State{}, err
	}
	return ask("127.0.0.1:" + strconv.Itoa(runner.StatePort))
}

// ask on the connection of this thread.
func ask(address string) (runner.State, error) {
	var s runner.State
	c, err := net.DialTimeout("tcp", address, time.Second) //nolint:noctx // It has a timeout.
	if err != nil {
		return s, err
	}
	defer func() { _ = c.Close() }()
	req, err := http.NewRequest(http.MethodGet, "http://"+address+runner.StatePath, nil) //nolint:noctx // The same.
	if err != nil {
		return s, err
	}
	req.Close = true
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if err := req.Write(c); err != nil {
		return s, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), req)
	if err != nil {
		return s, err
	}
	defer func() { _ = resp.Body.Close() }()
	return s, json.NewDecoder(resp.Body).Decode(&s)
}

// process of a pod by a word of its command line, as a number outside of the pod.
func (p *pod) process(t *testing.T, word string) int {
	t.Helper()
	ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid_for_children", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range all {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if own, err := os.Readlink(filepath.Join(dir, "ns/pid")); err == nil && own == ns && bytes.Contains(line, []byte(word)) && bytes.Contains(line, []byte("java")) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			return pid
		}
	}
	return 0
}

// killed process of a pod, by the class that it runs. It returns its number outside of the pod.
func (a *application) killed(i int, class string) int {
	a.t.Helper()
	pid := a.pods[i].process(a.t, class)
	if pid == 0 {
		a.fatalf("pod %d has no process %s", i, class)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		a.t.Fatal(err)
	}
	return pid
}

// read a file that pods write, or nothing.
func (a *application) read(name string) string {
	raw, _ := os.ReadFile(filepath.Join(a.shared, name))
	return strings.TrimSpace(string(raw))
}

// sparkHome of the machine.
func sparkHome(t *testing.T) string {
	t.Helper()
	program := os.Getenv("CAPSTAN_PROGRAM_SPARK")
	if program == "" {
		t.Fatal(`this test needs Spark: eval "$(go -C hack run ./programs spark)"`)
	}
	found, err := filepath.Glob(filepath.Join(program, "lib", "python3*", "site-packages", "pyspark"))
	if err != nil || len(found) != 1 {
		t.Fatalf("cannot find Spark in %s: %v, %v", program, found, err)
	}
	return found[0]
}

// compile the application against Spark's jars.
func compile(t *testing.T, home, jar string) {
	t.Helper()
	classes := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "javac", "-nowarn", "-d", classes, "-cp", filepath.Join(home, "jars", "*"), filepath.Join("testdata", "Squares.java")).CombinedOutput()
	if err != nil {
		t.Fatalf("cannot compile the application: %v: %s", err, out)
	}
	f, err := os.Create(jar)
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(f)
	if err := errors.Join(w.AddFS(os.DirFS(classes)), w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}
