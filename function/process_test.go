// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/capstan-dev/capstan/function/server"
)

// serveVariable makes the program of the tests a server, whose memory and time are then its own.
const serveVariable = "CAPSTAN_TEST_SERVE"

// What a server serves.
const (
	serveCapstan = "capstan"
	serveFifty   = "fifty"
	serveEcho    = "echo"
)

func TestMain(m *testing.M) {
	if what := os.Getenv(serveVariable); what != "" {
		go func() { // It ends with the benchmark that started it, also with one that was killed.
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
		fmt.Fprintln(os.Stderr, serve(what))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// serve the function, one of 50 objects, or an echo on the stock codec, and print the address.
func serve(what string) error {
	if what == serveEcho {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		s := grpc.NewServer(grpc.MaxRecvMsgSize(4 << 20))
		fnv1.RegisterFunctionRunnerServiceServer(s, echo{})
		fmt.Fprintln(os.Stdout, l.Addr())
		return s.Serve(l)
	}
	collectLater()
	f := newFunction(kinds(), func() time.Time { return now })
	if what == serveFifty {
		f = function(deployments(50))
	}
	s, err := server.New(f, server.Options{
		Log: slog.New(slog.DiscardHandler), Kinds: []string{"Algorithm"}, Address: "127.0.0.1:0", Insecure: true,
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, s.Addr())
	return s.Run(context.Background())
}

// An echo desires what earlier steps desire.
type echo struct {
	fnv1.UnimplementedFunctionRunnerServiceServer
}

func (echo) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	return &fnv1.RunFunctionResponse{Desired: req.GetDesired()}, nil
}

// BenchmarkServer is the processors' time of a server for a call, and that of an echo for the same request. The kernel reports it in
// steps of ten milliseconds: use many calls, as with -benchtime 1000x.
func BenchmarkServer(b *testing.B) {
	capstan := newFunction(kinds(), func() time.Time { return now })
	for name, tc := range map[string]struct {
		serve string
		req   *fnv1.RunFunctionRequest
	}{
		"Algorithm":     {serveCapstan, settled(b, capstan, basic())},
		"Database":      {serveCapstan, threeMembers(b, capstan)},
		"50Deployments": {serveFifty, settled(b, function(deployments(50)), basic())},
	} {
		for suffix, serve := range map[string]string{"": tc.serve, "Echo": serveEcho} {
			b.Run(name+suffix, func(b *testing.B) {
				s := startServer(b, serve)
				for range 20 { // What is computed once is no part of it.
					s.call(b, tc.req)
				}
				before := s.worked(b)
				for b.Loop() {
					s.call(b, tc.req)
				}
				b.ReportMetric(float64(s.worked(b)-before)/float64(b.N), "server-ns/op")
			})
		}
	}
}

// BenchmarkServerIdle is the resident memory of a server that has not been called, and after one call. Its own is what the kernel
// cannot take back: the rest are pages of the program's file.
func BenchmarkServerIdle(b *testing.B) {
	req := settled(b, newFunction(kinds(), func() time.Time { return now }), basic())
	for b.Loop() {
		s := startServer(b, serveCapstan)
		b.ReportMetric(s.memory(b, "VmRSS:"), "MiB-idle")
		b.ReportMetric(s.memory(b, "RssAnon:"), "MiB-idle-own")
		s.call(b, req)
		b.ReportMetric(s.memory(b, "VmRSS:"), "MiB-called")
		b.ReportMetric(s.memory(b, "RssAnon:"), "MiB-called-own")
		s.end()
	}
}

// BenchmarkServerPeak is the most memory that a server with the limit of package/platform.yaml takes while 64 callers have a large
// request each: one with 50 observed Deployments, and one of the greatest size that Crossplane sends. The kernel reports it.
func BenchmarkServerPeak(b *testing.B) {
	fifty := function(deployments(50))
	greatest := basic()
	greatest.Context = structOfSize(4<<20 - 64<<10)
	for name, tc := range map[string]struct {
		req   *fnv1.RunFunctionRequest
		calls int
	}{"50Deployments": {settled(b, fifty, basic()), 2}, "4MiB": {greatest, 1}} {
		b.Run(name, func(b *testing.B) {
			var peak float64
			for b.Loop() {
				peak = max(peak, peakOf(b, tc.req, tc.calls))
			}
			b.ReportMetric(float64(proto.Size(tc.req))/(1<<20), "MiB/request")
			b.ReportMetric(peak, "MiB-peak")
		})
	}
}

// structOfSize has many values, of about so many bytes together.
func structOfSize(size int) *structpb.Struct {
	s := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for i := range size / 140 {
		s.Fields[fmt.Sprintf("field-%07d", i)] = structpb.NewStringValue(strings.Repeat("value ", 18))
	}
	return s
}

// peakOf a server of its own, in MiB, when each caller makes some calls.
func peakOf(b *testing.B, req *fnv1.RunFunctionRequest, calls int) float64 {
	b.Helper()
	s := startServer(b, serveFifty)
	defer s.end()
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			for range calls {
				s.call(b, req)
			}
		})
	}
	callers.Wait()
	return s.memory(b, "VmHWM:")
}

// A process that serves, with a client.
type process struct {
	pid    int
	client fnv1.FunctionRunnerServiceClient
	// end the process. It can be called twice.
	end func()
}

// startServer with the limit of package/platform.yaml. It is ended at the end of the benchmark at the latest.
func startServer(b *testing.B, what string) *process {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), serveVariable+"="+what, "GOMEMLIMIT=200MiB")
	out, err := cmd.StdoutPipe()
	if err == nil {
		_, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	end := sync.OnceFunc(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	b.Cleanup(end)
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatalf("the server does not start: %v", err)
	}
	conn, err := grpc.NewClient("passthrough:///"+strings.TrimSpace(addr), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	return &process{pid: cmd.Process.Pid, client: fnv1.NewFunctionRunnerServiceClient(conn), end: end}
}

func (p *process) call(b *testing.B, req *fnv1.RunFunctionRequest) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	defer cancel()
	if _, err := p.client.RunFunction(ctx, req); err != nil {
		b.Errorf("a call failed: %v", err)
	}
}

// memory of the process in MiB: a line of its status.
func (p *process) memory(b *testing.B, line string) float64 {
	b.Helper()
	_, after, _ := strings.Cut(p.read(b, "status"), line)
	kib, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
	if err != nil {
		b.Fatal(err)
	}
	return kib / 1024
}

// worked is how long processors have worked for the process, in user space and for it in the kernel.
func (p *process) worked(b *testing.B) time.Duration {
	b.Helper()
	_, after, _ := strings.Cut(p.read(b, "stat"), ") ")
	ticks := 0
	for _, field := range strings.Fields(after)[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// read a file that the kernel has about the process.
func (p *process) read(b *testing.B, file string) string {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.pid, file))
	if err != nil {
		b.Fatal(err)
	}
	return string(raw)
}
