// deny_calls ERROR CALL[,CALL...] PROGRAM [ARGUMENT...]: runs a program under a filter like that of
// a container, which answers some system calls with an error (EPERM, ENOSYS).
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

const std::map<std::string, long> kCalls{
    {"recvmmsg", SYS_recvmmsg},
    {"epoll_pwait2", SYS_epoll_pwait2},
    {"close_range", SYS_close_range},
    {"pidfd_open", SYS_pidfd_open},
    {"memfd_create", SYS_memfd_create},
    {"eventfd2", SYS_eventfd2},
    {"signalfd4", SYS_signalfd4},
    {"sched_setscheduler", SYS_sched_setscheduler},
    {"sched_setaffinity", SYS_sched_setaffinity},
    {"process_vm_readv", SYS_process_vm_readv},
    {"clone3", SYS_clone3},
    {"epoll_create1", SYS_epoll_create1},
    {"pipe2", SYS_pipe2},
    {"socketpair", SYS_socketpair},
    {"accept4", SYS_accept4},
#ifdef SYS_rename
    {"rename", SYS_rename},
#endif
#ifdef SYS_poll
    {"poll", SYS_poll},
#endif
    {"setns", SYS_setns},
    {"unshare", SYS_unshare},
    {"flock", SYS_flock},
    {"fsync", SYS_fsync},
    {"linkat", SYS_linkat},
    {"statx", SYS_statx},
    {"fsopen", SYS_fsopen},
    {"mount", SYS_mount},
    {"getrandom", SYS_getrandom},
    {"prlimit64", SYS_prlimit64},
};

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "deny_calls: %s\n", why.c_str());
  std::exit(125);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) die("ERROR CALL[,CALL...] PROGRAM [ARGUMENT...]");
  const std::string word = argv[1];
  const std::uint32_t error = word == "ENOSYS" ? ENOSYS : EPERM;
  std::vector<sock_filter> filter{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
  std::istringstream names(argv[2]);
  for (std::string name; std::getline(names, name, ',');) {
    const auto call = kCalls.find(name);
    if (call == kCalls.end()) die("unknown call " + name);
    filter.push_back(
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call->second), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) die("PR_SET_NO_NEW_PRIVS");
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) die("PR_SET_SECCOMP");
  ::execvp(argv[3], argv + 3);
  die(std::string("cannot execute ") + argv[3] + ": " + std::strerror(errno));
}
