def test_os(host):
    assert host.system_info.distribution == "debian"
