// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// readyTimeout is how long a component may keep the next one waiting.
	readyTimeout = time.Minute
	// restartDelay keeps a component that fails at once from using up a processor.
	restartDelay = time.Second
)

// Init is the first process of a machine. It returns when the machine has been shut down.
func Init(path string) error {
	spec, err := readSpec(path)
	if err != nil {
		return err
	}
	if err := joinGroups(spec.Name); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(spec.Name)); err != nil {
		return fmt.Errorf("cannot set the host name: %w", err)
	}
	if err := mount(spec); err != nil {
		return err
	}
	// One byte means that the network is there; the end of the input means that the parent process has died.
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return fmt.Errorf("cannot start: the network was not connected: %w", err)
	}
	for name, value := range spec.Sysctls {
		if err := os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0o600); err != nil {
			return fmt.Errorf("cannot set %s: %w", name, err)
		}
	}
	return newSupervisor(spec).run()
}

// A supervisor keeps the components running and buries every process that loses its parent, as a first process must.
type supervisor struct {
	spec    Spec
	running map[int]Component
	again   chan Component
}

func newSupervisor(spec Spec) *supervisor {
	return &supervisor{
		spec:    spec,
		running: map[int]Component{},
		again:   make(chan Component, len(spec.Components)),
	}
}

func (s *supervisor) run() error {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)

	waiting := s.spec.Components
	ready := make(chan struct{}, 1)
	ready <- struct{}{}
	for {
		select {
		case <-ready:
			if len(waiting) == 0 {
				continue
			}
			c := waiting[0]
			waiting = waiting[1:]
			s.start(c)
			go func() {
				await(c)
				ready <- struct{}{}
			}()
		case <-children:
			s.bury(true)
		case c := <-s.again:
			s.start(c)
		case <-stop:
			s.shutdown()
			return nil
		}
	}
}

// start runs in the same goroutine as bury, so that no child can end before it is known.
func (s *supervisor) start(c Component) {
	out, err := os.OpenFile(filepath.Join(Data, "log", c.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		log.Printf("cannot open the log of %s: %v", c.Name, err)
		s.restart(c)
		return
	}
	defer func() { _ = out.Close() }()
	null, err := os.Open(os.DevNull)
	if err != nil {
		log.Printf("cannot start %s: %v", c.Name, err)
		s.restart(c)
		return
	}
	defer func() { _ = null.Close() }()
	// The first of two equal names counts.
	env := slices.Concat(c.Env, []string{"PATH=" + Path, "HOME=/"})
	pid, err := syscall.ForkExec(c.Path, append([]string{c.Path}, c.Args...), &syscall.ProcAttr{
		Dir:   Data,
		Env:   env,
		Files: []uintptr{null.Fd(), out.Fd(), out.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		log.Printf("cannot start %s: %v", c.Name, err)
		s.restart(c)
		return
	}
	log.Printf("started %s as %d", c.Name, pid)
	s.running[pid] = c
}

func (s *supervisor) restart(c Component) {
	time.AfterFunc(restartDelay, func() { s.again <- c })
}

// bury reaps every process that has ended.
func (s *supervisor) bury(restart bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err != nil || pid <= 0 {
			return
		}
		c, ok := s.running[pid]
		if !ok {
			continue
		}
		delete(s.running, pid)
		log.Printf("%s ended: exit code %d, signal %d", c.Name, status.ExitStatus(), status.Signal())
		if restart {
			s.restart(c)
		}
	}
}

// shutdown asks every process of the machine to end and waits for it as long as the grace allows. Container shims stay:
// they wait for us.
func (s *supervisor) shutdown() {
	log.Printf("shutting down")
	_ = syscall.Kill(-1, syscall.SIGTERM)
	for end := time.Now().Add(s.spec.Grace); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		s.bury(false)
		if idle() {
			return
		}
	}
}

// idle reports whether no process but this one and container shims is left.
func idle() bool {
	all, err := pids()
	if err != nil {
		return false
	}
	for _, pid := range all {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if pid == os.Getpid() || err != nil || strings.HasPrefix(string(name), "containerd-shim") {
			continue
		}
		if st, err := readStat(pid); err == nil && st.state != 'Z' {
			return false
		}
	}
	return true
}

// await returns when the component answers, or after readyTimeout: the next one then starts anyway and says what it
// misses.
func await(c Component) {
	if c.Ready == "" {
		return
	}
	for end := time.Now().Add(readyTimeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if answers(c.Ready) == nil {
			return
		}
	}
	log.Printf("%s does not answer at %s", c.Name, c.Ready)
}

func answers(at string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if strings.HasPrefix(at, "https://") {
		//nolint:gosec // who answers on this machine's own loopback interface is not in doubt
		insecure := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
		if err != nil {
			return err
		}
		resp, err := insecure.RoundTrip(req)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return errors.Join(errors.New(resp.Status), resp.Body.Close())
		}
		return resp.Body.Close()
	}
	network := "tcp"
	if strings.HasPrefix(at, "/") {
		network = "unix"
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, at)
	if err != nil {
		return err
	}
	return conn.Close()
}
