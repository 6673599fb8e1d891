// SPDX-License-Identifier: Apache-2.0

//go:build integration

package provider

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	accessv1alpha1 "github.com/capstan-dev/capstan/apis/access/v1alpha1"
	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/test/output"
	"github.com/capstan-dev/capstan/test/outside"
)

// system is where the platform keeps its Secrets.
const system = "crossplane-system"

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(outside.Main(m))
}

// program is the provider, built once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "capstan-provider-")
	if err != nil {
		return "", err
	}

	path := filepath.Join(dir, "provider")
	out, err := exec.Command("go", "build", "-o", path, "../../provider").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("cannot build the provider: %w\n%s", err, out)
	}

	return path, nil
})

// A bench is an API server of its own and what a test does with it.
type bench struct {
	client.Client

	t          *testing.T
	cfg        *rest.Config
	kubeconfig string
}

func newBench(t *testing.T) *bench {
	t.Helper()

	scheme := k8sruntime.NewScheme()
	for _, add := range []func(*k8sruntime.Scheme) error{
		clientgoscheme.AddToScheme, v1alpha1.AddToScheme, accessv1alpha1.AddToScheme, credentialsv1alpha1.AddToScheme,
		observev1alpha1.AddToScheme, registryv1alpha1.AddToScheme, storagev1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}

	cfg := outside.APIServer(t)

	kube, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}

	b := &bench{Client: kube, t: t, cfg: cfg, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	b.namespaces(system, "shop", "bank")

	c := clientcmdapi.NewConfig()
	c.Clusters["test"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	c.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}
	c.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	c.CurrentContext = "test"

	if err := clientcmd.WriteToFile(*c, b.kubeconfig); err != nil {
		t.Fatal(err)
	}

	return b
}

func (b *bench) namespaces(names ...string) {
	b.t.Helper()

	for _, n := range names {
		b.apply(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}})
	}
}

// apply creates objects like a user.
func (b *bench) apply(objects ...client.Object) {
	b.t.Helper()

	for _, o := range objects {
		if err := b.Create(b.t.Context(), o); err != nil {
			b.t.Fatalf("cannot create %T %q: %v", o, o.GetName(), err)
		}
	}
}

// get reads an object again.
func (b *bench) get(o client.Object) {
	b.t.Helper()

	if err := b.Get(b.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		b.t.Fatalf("cannot get %T %q: %v", o, o.GetName(), err)
	}
}

// eventually waits until check returns an empty text.
func (b *bench) eventually(within time.Duration, what string, check func() string) {
	b.t.Helper()

	said := ""
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(250 * time.Millisecond) {
		if said = check(); said == "" {
			return
		}
	}

	b.t.Fatalf("%s did not happen within %s: %s", what, within, said)
}

// ready returns what blocks a managed resource from being ready and synced, or "".
func ready(mg resource.Managed) string {
	for _, ct := range []xpv2.ConditionType{xpv2.TypeReady, xpv2.TypeSynced} {
		if c := mg.GetCondition(ct); c.Status != corev1.ConditionTrue {
			return fmt.Sprintf("%T %s/%s: %s=%s %s %s; %s", mg, mg.GetNamespace(), mg.GetName(), ct, c.Status, c.Reason, c.Message,
				mg.GetCondition(v1alpha1.TypeConnected).Message)
		}
	}

	return ""
}

// becomeReady waits for managed resources.
func (b *bench) becomeReady(within time.Duration, all ...resource.Managed) {
	b.t.Helper()

	for _, mg := range all {
		b.eventually(within, "readiness", func() string {
			b.get(mg)

			return ready(mg)
		})
	}
}

// connected waits until the condition Connected of an object has a reason.
func (b *bench) connected(within time.Duration, o interface {
	client.Object
	resource.Conditioned
}, want xpv2.ConditionReason,
) xpv2.Condition {
	b.t.Helper()

	var c xpv2.Condition

	b.eventually(within, fmt.Sprintf("%T %s/%s: reason %s", o, o.GetNamespace(), o.GetName(), want), func() string {
		b.get(o)

		if c = o.GetCondition(v1alpha1.TypeConnected); c.Reason == want {
			return ""
		}

		return fmt.Sprintf("%s %s", c.Reason, c.Message)
	})

	return c
}

// platform creates the ClusterProviderConfigs s3 and mlflow, with their Secrets.
func (b *bench) platform(s3, s3CA string, key, secret string, mlflow, mlflowCA, user, password string) {
	b.t.Helper()

	b.apply(
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "s3"},
			StringData: map[string]string{v1alpha1.KeyAccessKeyID: key, v1alpha1.KeySecretAccessKey: secret},
		},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "mlflow"},
			StringData: map[string]string{v1alpha1.KeyUsername: user, v1alpha1.KeyPassword: password},
		},
		&v1alpha1.ClusterProviderConfig{
			ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DefaultS3Config},
			Spec: v1alpha1.ClusterProviderConfigSpec{S3: &v1alpha1.SharedS3Config{S3Config: v1alpha1.S3Config{
				Endpoint:    s3,
				CABundle:    s3CA,
				Credentials: v1alpha1.S3Credentials{SecretRef: v1alpha1.SecretReference{Name: "s3"}},
			}}},
		},
		&v1alpha1.ClusterProviderConfig{
			ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DefaultMLflowConfig},
			Spec: v1alpha1.ClusterProviderConfigSpec{MLflow: &v1alpha1.MLflowConfig{
				URL:      mlflow,
				CABundle: mlflowCA,
				Credentials: &v1alpha1.HTTPCredentials{
					Basic: &v1alpha1.BasicCredentials{SecretRef: v1alpha1.SecretReference{Name: "mlflow"}},
				},
			}},
		},
	)
}

// servers are the real ones, and the proxies in front of them.
type servers struct {
	s3     *outside.S3Server
	mlflow *outside.MLflowServer

	toS3, toMLflow *outside.FaultProxy
}

// outside connects the platform's configs with real servers.
func (b *bench) outside() *servers {
	b.t.Helper()

	s := &servers{s3: outside.S3(b.t), mlflow: outside.MLflow(b.t)}
	s.toS3 = outside.Proxy(b.t, s.s3.Endpoint, s.s3.CA)
	s.toMLflow = outside.Proxy(b.t, s.mlflow.URL, s.mlflow.CA)
	b.platform(s.toS3.URL, string(s.toS3.CA), s.s3.AccessKey, s.s3.SecretKey,
		s.toMLflow.URL, string(s.toMLflow.CA), s.mlflow.Username, s.mlflow.Password)

	return s
}

// A process is a running provider.
type process struct {
	cmd  *exec.Cmd
	log  *output.Buffer
	done chan struct{}
}

// start the provider, without leader election: a killed process does not release the lease, and the next one would wait
// a minute.
func (b *bench) start(args ...string) *process {
	b.t.Helper()

	path, err := program()
	if err != nil {
		b.t.Fatal(err)
	}

	p := &process{log: &output.Buffer{}, done: make(chan struct{})}
	p.cmd = exec.Command(path, append([]string{
		"--no-leader-election", "--metrics-address=0", "--health-address=0", "--events-address=", "--max-reconcile-rate=100",
	}, args...)...)
	p.cmd.Env = append(os.Environ(), "KUBECONFIG="+b.kubeconfig)
	p.cmd.Stderr = p.log

	started := make(chan error)
	go func() {
		// It ends with the thread that started it, so that nothing is left when the test is killed.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()

		p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		started <- p.cmd.Start()
		_ = p.cmd.Wait()
		close(p.done)
	}()

	if err := <-started; err != nil {
		b.t.Fatal(err)
	}

	b.t.Cleanup(p.kill)

	return p
}

// kill the provider without a chance to clean up.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// usage of CPU, since the start, and of memory now.
func (p *process) usage(t *testing.T) (time.Duration, int64) {
	t.Helper()

	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}

	// The name in brackets can contain spaces. CPU is in hundredths of a second.
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+2:]))
	user, _ := strconv.Atoi(f[11])
	sys, _ := strconv.Atoi(f[12])
	pages, _ := strconv.ParseInt(f[21], 10, 64)

	return time.Duration(user+sys) * 10 * time.Millisecond, pages * int64(os.Getpagesize())
}

// writes that the API server has carried out so far, by kind.
func (b *bench) writes() map[string]int {
	b.t.Helper()

	c, err := rest.HTTPClientFor(b.cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	defer c.CloseIdleConnections()

	res, err := c.Get(b.cfg.Host + "/metrics")
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()

	all := &bytes.Buffer{}
	if _, err := all.ReadFrom(res.Body); err != nil {
		b.t.Fatal(err)
	}

	found := map[string]int{}

	for line := range strings.Lines(all.String()) {
		labels, ok := strings.CutPrefix(line, "apiserver_request_total{")
		if !ok {
			continue
		}

		labels, count, _ := strings.Cut(labels, "} ")
		n, _ := strconv.ParseFloat(strings.TrimSpace(count), 64)

		// The API server itself writes leases and configuration.
		verb, group := label(labels, "verb"), label(labels, "group")
		if verb == "GET" || verb == "LIST" || verb == "WATCH" || !strings.HasSuffix(group, "capstan.dev") && label(labels, "resource") != "secrets" && label(labels, "resource") != "events" {
			continue
		}

		found[verb+" "+label(labels, "resource")] += int(n)
	}

	return found
}

func label(labels, name string) string {
	_, rest, _ := strings.Cut(labels, name+`="`)
	value, _, _ := strings.Cut(rest, `"`)

	return value
}

// more is what b has in addition to a.
func more(a, b map[string]int) map[string]int {
	d := map[string]int{}

	for k, n := range b {
		if n > a[k] {
			d[k] = n - a[k]
		}
	}

	return d
}

// each runs do for 0 to n-1, several at a time.
func each(n int, do func(int)) {
	var wg sync.WaitGroup

	limit := make(chan struct{}, 16)

	for i := range n {
		limit <- struct{}{}

		wg.Go(func() {
			defer func() { <-limit }()
			do(i)
		})
	}

	wg.Wait()
}

// scale is n, or the variable CAPSTAN_SCALE for a large run by hand.
func scale(n int) int {
	if s, err := strconv.Atoi(os.Getenv("CAPSTAN_SCALE")); err == nil {
		return s
	}

	return n
}

// lasting is d, or the variable CAPSTAN_LASTING for a long run by hand.
func lasting(d time.Duration) time.Duration {
	if s, err := time.ParseDuration(os.Getenv("CAPSTAN_LASTING")); err == nil {
		return s
	}

	return d
}
