// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
	"github.com/capstan-dev/capstan/test/container"
	"github.com/capstan-dev/capstan/test/outside"
)

const (
	folderCloudToken = "/etc/capstan/cloud-token"
	roleARN          = "arn:aws:iam::123456789012:role/demo/backups"
	audienceOfSTS    = "sts.amazonaws.com"
	hostOfSTS        = "sts.us-east-1.amazonaws.com"
	hostOfS3         = "s3.us-east-1.amazonaws.com"
)

// role of the pods, in the variables that they have by their StatefulSet.
func (c *cluster) role() []string {
	if c.cloud == nil {
		return nil
	}
	return []string{"AWS_ROLE_ARN=" + roleARN, "AWS_WEB_IDENTITY_TOKEN_FILE=" + folderCloudToken + "/token"}
}

// token of the members' account for the STS, a new one, as the kubelet has it renewed in its file.
func (c *cluster) token() {
	c.t.Helper()
	r, err := c.client.CoreV1().ServiceAccounts(c.ns).CreateToken(c.t.Context(), database+"-members",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audienceOfSTS}}}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	c.file("cloud-token/token", []byte(r.Status.Token))
	c.cloud.mu.Lock()
	defer c.cloud.mu.Unlock()
	c.cloud.latest[c.identified()] = r.Status.Token
}

// identified is the name that the members' account has in tokens.
func (c *cluster) identified() string {
	return "system:serviceaccount:" + c.ns + ":" + database + "-members"
}

// A cloud is AWS as members see it, by its names: an STS that asks the cluster whose a token is, and gives keys for a while to accounts that
// the role trusts, and S3 that takes no other keys, and checks every signature. The objects are in an S3 server of the tests behind it.
type cloud struct {
	tokens *kubernetes.Clientset
	keys   *store
	ca     []byte
	ip     string

	mu sync.Mutex
	// trusted accounts of the role, and the latest token of each, which alone counts.
	trusted map[string]bool
	latest  map[string]string
	// claims is how long keys are said to hold. They hold for a part of that.
	claims time.Duration
	// sessions that were given, each with its end.
	sessions map[string]time.Time
	// expired counts requests with keys that had ended.
	expired int
	// held is a part of the next path that waits until keys that were given before have ended.
	held string
}

// holds is how long keys hold in truth. Clients renew theirs five minutes before they are said to end.
const (
	holds      = 20 * time.Second
	renewAhead = 5 * time.Minute
)

func newCloud(t *testing.T) *cloud {
	t.Helper()
	tokens, err := kubernetes.NewForConfig(outside.SharedAPIServer(t))
	if err != nil {
		t.Fatal(err)
	}
	s := &cloud{
		tokens: tokens, keys: newStore(t), ip: fmt.Sprintf("127.%d.250.1", 64+os.Getpid()%128), trusted: map[string]bool{}, latest: map[string]string{},
		claims: renewAhead + 4*time.Second, sessions: map[string]time.Time{},
	}
	ca, err := container.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := ca.Issue("cloud", []string{hostOfSTS, hostOfS3})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(s.keys.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	quiet := log.New(io.Discard, "", 0)
	forward := &httputil.ReverseProxy{
		// The server behind knows no sessions.
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Header.Del("X-Amz-Security-Token")
			_ = s.sign(r.Out, "", time.Now())
		},
		Transport: outside.Client(s.keys.CA).Transport, ErrorLog: quiet,
	}
	l, err := net.Listen("tcp", s.ip+":443")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		ErrorLog: quiet, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.Host {
			case hostOfSTS:
				s.sts(w, r)
			case hostOfS3:
				if s.admits(w, r) {
					forward.ServeHTTP(w, r)
				}
			default:
				http.Error(w, "no such host: "+r.Host, http.StatusMisdirectedRequest)
			}
		}),
	}
	go func() { _ = server.ServeTLS(l, "", "") }()
	t.Cleanup(func() { _ = server.Close() })
	s.ca = ca.PEM
	return s
}

// of a cluster: it lets the pods of a cluster have a role, and a bucket without keys.
func (s *cloud) of(adjust func(*cluster)) func(*cluster) {
	return func(c *cluster) {
		adjust(c)
		c.cloud = s
		c.reaches = append(c.reaches, s.ip+" "+hostOfSTS+" "+hostOfS3+"\n")
	}
}

// connection files of the bucket, as its Secret is mounted.
func (s *cloud) connection(c *cluster, folders ...string) {
	c.t.Helper()
	for _, folder := range folders {
		for key, value := range map[string]string{"endpoint": "https://" + hostOfS3, "region": s.keys.Region, "bucket": bucket, "ca.crt": string(s.ca)} {
			c.file(folder+"/"+key, []byte(value))
		}
	}
	c.token()
}

// trust the members of a cluster.
func (s *cloud) trust(c *cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trusted[c.identified()] = true
}

// hold the next request whose path has a part until keys that were given before have ended.
func (s *cloud) hold(part string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = part
}

// claim that keys hold for a time.
func (s *cloud) claim(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims = d
}

// ended keys with which requests came since the last call.
func (s *cloud) ended() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.expired
	s.expired = 0
	return n
}

// given sessions, by their number.
func (s *cloud) given() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// over reports whether the first sessions have ended.
func (s *cloud) over(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range n {
		if time.Now().Before(s.sessions[sessionOf(i)]) {
			return false
		}
	}
	return true
}

func sessionOf(n int) string { return fmt.Sprintf("session-%d", n) }

// answered by AWS, as XML with a number that is another one each time.
func answered(w http.ResponseWriter, status int, form, code string) {
	w.Header().Set("X-Amzn-Requestid", strconv.FormatInt(time.Now().UnixNano(), 16))
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, form, code, time.Now().UnixNano())
}

func (s *cloud) sts(w http.ResponseWriter, r *http.Request) {
	const refusal = "<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>Not authorized</Message></Error><RequestId>%x</RequestId></ErrorResponse>"
	token := r.FormValue("WebIdentityToken")
	if r.FormValue("Action") != "AssumeRoleWithWebIdentity" || r.FormValue("RoleArn") != roleARN || r.FormValue("RoleSessionName") == "" {
		answered(w, http.StatusBadRequest, refusal, "ValidationError")
		return
	}
	review, err := s.tokens.AuthenticationV1().TokenReviews().Create(r.Context(), &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{audienceOfSTS}},
	}, metav1.CreateOptions{})
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil || !review.Status.Authenticated:
		answered(w, http.StatusBadRequest, refusal, "InvalidIdentityToken")
		return
	case !s.trusted[review.Status.User.Username]:
		answered(w, http.StatusForbidden, refusal, "AccessDenied")
		return
	case s.latest[review.Status.User.Username] != token:
		answered(w, http.StatusBadRequest, refusal, "ExpiredTokenException")
		return
	}
	session := sessionOf(len(s.sessions))
	s.sessions[session] = time.Now().Add(holds)
	_, _ = fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>`+
		`<AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken>%s</SessionToken><Expiration>%s</Expiration>`+
		`</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
		s.keys.AccessKey, s.keys.SecretKey, session, time.Now().Add(s.claims).UTC().Format(time.RFC3339))
}

// sign a request with the keys that the STS gives, of a session.
func (s *cloud) sign(r *http.Request, session string, at time.Time) error {
	keys := aws.Credentials{AccessKeyID: s.keys.AccessKey, SecretAccessKey: s.keys.SecretKey, SessionToken: session}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	return signer.SignHTTP(r.Context(), keys, r, r.Header.Get("X-Amz-Content-Sha256"), "s3", s.keys.Region, at)
}

var signedHeaders = regexp.MustCompile(`SignedHeaders=([^, ]+)`)

// signed is what the header Authorization of a request has to be.
func (s *cloud) signed(r *http.Request) string {
	m := signedHeaders.FindStringSubmatch(r.Header.Get("Authorization"))
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if m == nil || err != nil {
		return ""
	}
	again := r.Clone(r.Context())
	again.Header, again.ContentLength = http.Header{}, 0
	for name := range strings.SplitSeq(m[1], ";") {
		switch name {
		case "host":
		case "content-length":
			again.ContentLength = r.ContentLength
		default:
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	if s.sign(again, r.Header.Get("X-Amz-Security-Token"), at) != nil {
		return ""
	}
	return again.Header.Get("Authorization")
}

// admits a request with keys of the STS that have not ended.
func (s *cloud) admits(w http.ResponseWriter, r *http.Request) bool {
	const refusal = "<Error><Code>%s</Code><RequestId>%x</RequestId></Error>"
	s.mu.Lock()
	end, known := s.sessions[r.Header.Get("X-Amz-Security-Token")]
	over := known && time.Now().After(end)
	if over {
		s.expired++
	}
	authorization := r.Header.Get("Authorization")
	signed := s.signed(r)
	wait := known && s.held != "" && strings.Contains(r.URL.Path, s.held)
	if wait {
		s.held = ""
	}
	s.mu.Unlock()
	switch {
	case !known:
		answered(w, http.StatusForbidden, refusal, "InvalidAccessKeyId")
		return false
	case authorization == "" || strings.ReplaceAll(signed, " ", "") != strings.ReplaceAll(authorization, " ", ""):
		answered(w, http.StatusForbidden, refusal, "SignatureDoesNotMatch")
		return false
	case over:
		answered(w, http.StatusBadRequest, refusal, "ExpiredToken")
		return false
	case wait:
		select {
		case <-time.After(time.Until(end) + time.Second):
		case <-r.Context().Done():
		}
	}
	return true
}

// TestRole: members and Jobs without a key open the bucket as a role, with the token that their account has at the time, and renew the keys
// that they get. An account that the role does not trust gets nothing.
func TestRole(t *testing.T) {
	s := newCloud(t)
	c := newClusterWith(t, []string{"a"}, s.of(archives))
	s.connection(c, "bucket")
	settings := c.settings("a")
	settings.Verify = &pgmember.Verify{}
	c.want(pgmember.Config{Backup: &settings})

	c.start("a")
	var before string
	c.eventually("a member that the role does not trust waits for the bucket", time.Minute, func() bool {
		reason, message := c.blockedBy("a")
		before = message
		return reason == members.ReasonWaitingForBucket
	})
	t.Logf("told: %s", before)
	if !strings.Contains(before, "AccessDenied") || !strings.Contains(before, "trust policy") {
		t.Errorf("why is not told: %s", before)
	}
	s.trust(c)
	c.eventually("it begins once the role trusts it", 2*time.Minute, func() bool { return c.ready("a") })
	begin(t, c)

	s.hold("/bundle/")
	first, out := c.backup()
	if first.Type != pgbackrest.Full {
		t.Fatalf("no backup: %s", out)
	}
	if took := first.Ended.Sub(first.Began); took < holds {
		t.Errorf("the backup took %s, and keys ended only after %s", took, holds)
	}
	c.eventually("the leader tells of the backup", time.Minute, func() bool { return c.told("a").Label == first.Label && c.told("a").Archive == members.ArchiveOK })

	// The kubelet renews the token, and the one before ends.
	c.token()
	w := c.write()
	w.goesOn(5 * time.Second)
	marked := w.count()
	c.switchLog("a")
	c.eventually("all is archived with the other token", time.Minute, func() bool { return c.archived("a") })
	if second, out := c.backup(); second.Type != pgbackrest.Incremental {
		t.Errorf("no second backup: %s", out)
	}
	if left, out := c.verify("one"); len(left) > 0 {
		t.Errorf("a verification leaves %v: %s", left, out)
	}
	if v := s.keys.verification(t, settings); v.Failure != "" || v.ID != "one" || v.Passed.Backup == "" {
		t.Errorf("the verification: %+v", v)
	}
	if n := s.ended(); n > 0 {
		t.Errorf("%d requests came with keys that had ended", n)
	}

	t.Run("Restore", func(t *testing.T) {
		d := newClusterWith(t, []string{"a"}, s.of(restoring))
		s.connection(d, "bucket", "source")
		d.want(pgmember.Config{Backup: new(d.settings("a")), From: &pgmember.Source{Path: settings.Path}})
		d.start("a")
		d.eventually("a copy that the role does not trust is refused", 2*time.Minute, func() bool {
			reason, message := d.blockedBy("a")
			return reason != "" && strings.Contains(message, "AccessDenied")
		})
		s.trust(d)
		d.eventually("the copy is ready once the role trusts it", 3*time.Minute, func() bool { return d.ready("a") })
		d.loggable("a")
		if n := len(d.rows("a")); n < marked {
			t.Errorf("the copy has %d rows, want at least %d", n, marked)
		}
	})
	t.Run("Follow", func(t *testing.T) {
		d := newClusterWith(t, []string{"a"}, s.of(following))
		s.connection(d, "bucket", "source")
		s.trust(d)
		d.want(pgmember.Config{Backup: new(d.settings("a")), From: &pgmember.Source{Path: settings.Path, Follow: true}})
		d.start("a")
		d.eventually("the standby follows", 3*time.Minute, func() bool { return d.follows("a") })
		began := s.given()
		d.eventually("the keys that it began with have ended", 2*holds, func() bool { return s.over(began) })
		w.goesOn(5 * time.Second)
		now := w.count()
		c.switchLog("a")
		d.eventually("what was archived since is replayed", time.Minute, func() bool { return len(d.rows("a")) >= now })
	})
	// The test notices keys that are not renewed: a client that is told another end keeps them.
	t.Run("NotRenewed", func(t *testing.T) {
		s.ended()
		s.claim(time.Hour)
		s.hold("/bundle/")
		if third, _ := c.backup(); third.Label != "" || s.ended() == 0 {
			t.Errorf("the backup %+v was taken with keys that had ended", third)
		}
	})
	w.check(t)
}
